// The table of measurements, newest first, with a dialog to correct or withdraw one.

import { announce, el, field, numberInput, replace, runWithButton } from "./dom.js";
import { formatPoint, formatValue, number } from "./format.js";
import { readNumber } from "./suggestions.js";

const FIRST_ROWS = 200; // shown until all are requested

export function measurementsPanel(current, writable, act) {
  let showAll = false;
  const node = el("div", {});

  function redraw() {
    const view = current();
    const newestFirst = view.measurements.slice().reverse();
    const rows = showAll ? newestFirst : newestFirst.slice(0, FIRST_ROWS);
    const scrollTop = node.querySelector(".scroll")?.scrollTop ?? 0;
    const more = el("button", { class: "quiet", onclick: () => { showAll = true; redraw(); } }, `Show all ${newestFirst.length}`);
    replace(node, el("h2", {}, "Measurements"),
      rows.length ? table(rows, view, writable, act) : el("p", { class: "note" }, "No measurements yet."),
      newestFirst.length > rows.length ? more : null);
    const scroll = node.querySelector(".scroll");
    if (scroll) scroll.scrollTop = scrollTop;
  }
  return { node, redraw };
}

function table(rows, view, writable, act) {
  const heading = (text) => el("th", { scope: "col" }, text);
  const extra = [];
  if (view.levels) extra.push(["Noise level", "level"]);
  if (view.tasks) extra.push(["Task", "task"]);
  if (view.vehicle_names.length) extra.push(["Measured by", "who"]);
  const headings = el("tr", {}, heading("#"), view.columns.map((column) => heading(column.label)), heading("Value"),
    writable ? heading(el("span", { class: "visually-hidden" }, "Change")) : null,
    extra.map(([label]) => heading(label)), heading("Noise variance"), heading("Cost"), heading("Spent"));
  const change = (row) => el("td", {}, el("button", { class: "quiet", type: "button", "aria-label": `Correct measurement ${row.id}`,
    onclick: () => openCorrection(row, view, act) }, "Correct"));
  const body = rows.map((row) => el("tr", { "data-id": row.id },
    el("th", { scope: "row" }, `${row.id}`), view.columns.map((column) => el("td", {}, formatValue(row.point[column.name]))),
    el("td", {}, el("b", {}, number(row.value, 5)), view.result.outliers.includes(row.id) ? el("small", {}, " left out") : null),
    writable ? change(row) : null,
    extra.map(([, key]) => el("td", {}, `${row[key] ?? "–"}`)),
    el("td", {}, number(row.noise, 3)), el("td", {}, number(row.cost)), el("td", {}, number(row.spent))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of measurements" },
    el("table", {}, el("caption", { class: "visually-hidden" }, "Measurements, newest first"), el("thead", {}, headings), el("tbody", {}, body)));
}

function openCorrection(row, view, act) {
  const alert = el("p", { class: "alert", role: "alert" });
  const value = numberInput({ value: String(row.value), required: true });
  const save = el("button", { class: "main", type: "submit" }, "Correct");
  const withdraw = el("button", { type: "button", class: "danger", onclick: () => runWithButton(withdraw, alert, async () => {
    await act("withdraw", { id: row.id });
    announce(`Measurement ${row.id} is withdrawn`);
    dialog.close();
  }) }, "Withdraw");
  const dialog = el("dialog", { "aria-labelledby": "correction-title", onclose: () => dialog.remove() },
    el("h2", { id: "correction-title" }, `Measurement ${row.id}`), el("p", { class: "note" }, formatPoint(row.point, view.columns)),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      runWithButton(save, alert, async () => {
        await act("correct", { id: row.id, y: readNumber(value, "The value") });
        announce(`Measurement ${row.id} is corrected`);
        dialog.close();
      });
    } }, field("Value", value, "the study is recomputed as if this value had been entered at first"), alert,
    el("p", { class: "row" }, save, withdraw, el("span", { class: "grow" }), el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
  value.select();
}
