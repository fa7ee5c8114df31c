// The first tile of a study: the answer to its question in plain words, as the server says it.

import { el, replace } from "./dom.js";

export function answerPanel(current) {
  const node = el("section", { class: "answer card", "aria-label": "Answer" });
  function redraw() {
    const { answer, words } = current();
    replace(node, el("h2", {}, `${words[0].toUpperCase()}${words.slice(1)}`),
      el("p", { class: "headline" }, answer.headline),
      answer.details.map((text) => el("p", { class: "note" }, text)));
  }
  return { node, redraw };
}
