// The certificate of a study: what can be stated, with which probability and under which assumptions.

import { el, replace } from "./dom.js";

export function certificatePanel(current) {
  const node = el("div", {});
  const items = (title, rows) => (rows.length ? [el("h3", {}, title), el("ul", {}, rows.map((row) => el("li", {}, row)))] : []);
  function redraw() {
    const { caveats, paper, result: { certificate, model_check: check } } = current();
    const open = node.querySelector("details")?.open ?? false;
    replace(node, el("h2", {}, "Certificate"),
      el("blockquote", {}, certificate.statement),
      certificate.further.length ? el("ul", { class: "further" }, certificate.further.map((text) => el("li", {}, text))) : null,
      items("Assumptions", certificate.assumes),
      check.ok
        ? el("p", { class: "note" }, `Model check: ${check.message}`)
        : el("p", { class: "failed-check" }, el("strong", {}, "Model check failed. "), check.message),
      items("Caveats", caveats),
      el("details", { open, class: "paper" }, el("summary", {}, paper.title),
        el("p", {}, el("span", { class: `badge ${paper.regime}` }, paper.regime), " ", el("span", { class: "note" }, `${paper.summary}.`)),
        el("dl", { class: "facts" }, paper.rows.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)])),
        items("Caveats", paper.caveats)));
  }
  return { node, redraw };
}
