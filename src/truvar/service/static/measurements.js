// The table of measurements, newest first, with correction.

import { busy, el, field, replace, say } from "./dom.js";
import { number, place } from "./format.js";
import { checked } from "./suggestions.js";

const SHOWN = 200; // rows, until all are asked for

export function values(current, writable, act) {
  let all = false;
  const node = el("div", {});
  function redraw() {
    const view = current();
    const rows = view.measurements.slice().reverse();
    const shown = all ? rows : rows.slice(0, SHOWN);
    const extra = [view.levels ? "level" : null, view.tasks ? "task" : null].filter(Boolean);
    const scrolled = node.querySelector(".scroll")?.scrollTop ?? 0;
    replace(node, el("h2", {}, "Measurements"), rows.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of measurements" },
      el("table", {}, el("caption", { class: "unseen" }, "Measurements, newest first"),
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "#"), view.columns.map((c) => el("th", { scope: "col" }, c.label)),
          el("th", { scope: "col" }, "Value"), writable ? el("th", { scope: "col" }, el("span", { class: "unseen" }, "Change")) : null,
          extra.map((name) => el("th", { scope: "col" }, name)),
          el("th", { scope: "col" }, "Noise variance"), el("th", { scope: "col" }, "Cost"), el("th", { scope: "col" }, "Spent"))),
        el("tbody", {}, shown.map((row) => el("tr", { "data-id": row.id },
          el("th", { scope: "row" }, `${row.id}`), view.columns.map((c) => el("td", {}, number(row.point[c.name], 5))),
          el("td", {}, el("b", {}, number(row.value, 5))),
          writable ? el("td", {}, el("button", { class: "quiet", type: "button", "aria-label": `Correct measurement ${row.id}`, onclick: () => correct(row, view, act) }, "Correct")) : null,
          extra.map((name) => el("td", {}, `${row[name] ?? "–"}`)),
          el("td", {}, number(row.noise, 3)), el("td", {}, number(row.cost)), el("td", {}, number(row.spent))))))) :
      el("p", { class: "note" }, "Nothing was measured yet."),
    rows.length > shown.length ? el("button", { class: "quiet", onclick: () => { all = true; redraw(); } }, `Show all ${rows.length}`) : null);
    const scroll = node.querySelector(".scroll");
    if (scroll) scroll.scrollTop = scrolled;
  }
  return { node, redraw };
}

function correct(row, view, act) {
  const alert = el("p", { class: "alert", role: "alert" });
  const value = el("input", { type: "text", inputmode: "decimal", value: String(row.value), required: true, autocomplete: "off" });
  const save = el("button", { class: "main", type: "submit" }, "Correct");
  const back = el("button", { type: "button", class: "danger", onclick: () => busy(back, alert, async () => {
    await act("withdraw", { id: row.id });
    say(`Measurement ${row.id} is taken back`);
    dialog.close();
  }) }, "Take it back");
  const dialog = el("dialog", { "aria-labelledby": "correcting", onclose: () => dialog.remove() },
    el("h2", { id: "correcting" }, `Measurement ${row.id}`), el("p", { class: "note" }, place(row.point, view.columns)),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      busy(save, alert, async () => {
        await act("correct", { id: row.id, y: checked(value, "The value") });
        say(`Measurement ${row.id} is corrected`);
        dialog.close();
      });
    } }, field("Value", value, "the study is worked out again as if it had been told right"), alert,
    el("p", { class: "row" }, save, back, el("span", { class: "grow" }), el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
  value.select();
}
