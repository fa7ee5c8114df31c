// The table of measurements, newest first, with a filter, pages, and a dialog to correct, repeat or withdraw one.

import { announce, el, field, replace, runWithButton } from "./dom.js";
import { count, countNoun, formatCoordinate, number } from "./format.js";
import { formatPlace, isNamed } from "./places.js";
import { readNumbers } from "./inputs.js";
import { newKey, unsent } from "./offline-queue.js";
import { measuredInputs, measuredText } from "./quantities.js";

const PAGE_SIZES = [20, 50, 100]; // rows

export function measurementsPanel(study) {
  const { current } = study;
  let page = 0;
  const filter = el("input", { type: "search", autocomplete: "off", oninput: () => { page = 0; redraw(); } });
  const kind = el("select", { onchange: () => { page = 0; redraw(); } },
    [["all", "all"], ["measured", "measured"], ["failed", "failed"], ["left out", "left out"]].map(([value, text]) => el("option", { value }, text)));
  const size = el("select", { onchange: () => { page = 0; redraw(); } }, PAGE_SIZES.map((rows) => el("option", { value: rows }, `${rows} rows`)));
  const controls = el("div", { class: "fields" }, field("Filter", filter, "id, value, text"), field("Show", kind), field("Page", size));
  const newer = el("button", { type: "button", onclick: () => { page -= 1; redraw(); } }, "Newer");
  const older = el("button", { type: "button", onclick: () => { page += 1; redraw(); } }, "Older");
  const position = el("span", { class: "note", role: "status" });
  const pages = el("p", { class: "row" }, newer, position, older);
  const body = el("div", {});
  const node = el("div", {}, el("h2", {}, "Measurements"), controls, body, pages);

  function redraw() {
    const view = current();
    const everything = allRows(view);
    const rows = everything.filter((row) => matches(row, view, kind.value, filter.value));
    const length = Number(size.value);
    const last = Math.max(0, Math.ceil(rows.length / length) - 1);
    page = Math.max(0, Math.min(page, last));
    const shown = rows.slice(page * length, (page + 1) * length);
    const scrollTop = node.querySelector(".scroll")?.scrollTop ?? 0;
    controls.hidden = everything.length === 0;
    let content = el("p", { class: "note" }, everything.length ? "No row matches." : "No measurements yet.");
    if (shown.length) content = table(shown, view, study);
    replace(body, content);
    pages.hidden = rows.length === 0;
    newer.disabled = page === 0;
    older.disabled = page === last;
    const first = page * length + 1;
    position.textContent = `${first} to ${first + shown.length - 1} of ${countNoun(rows.length, "row")}`
      + `${rows.length < everything.length ? ` that match, of ${count(everything.length)}` : ""}`;
    const scroll = node.querySelector(".scroll");
    if (scroll) scroll.scrollTop = scrollTop;
  }
  return { node, redraw };
}

// Measurements and failures, newest first.
function allRows(view) {
  const failed = view.failures.map((row) => ({ ...row, failed: true }));
  return [...view.measurements, ...failed].sort((a, b) => b.id - a.id);
}

const isLeftOut = (row, view) => view.result.outliers.includes(row.id);

function matches(row, view, kind, text) {
  if (kind === "failed" && !row.failed) return false;
  if (kind === "measured" && row.failed) return false;
  if (kind === "left out" && !isLeftOut(row, view)) return false;
  const wanted = text.trim().toLowerCase().replace("−", "-");
  if (!wanted) return true;
  if (/^#?\d+$/.test(wanted) && String(row.id) === wanted.replace("#", "")) return true;
  const cells = [row.value, row.who, row.task, row.reason, row.label, ...Object.values(row.point)];
  return cells.some((cell) => cell !== null && cell !== undefined && String(cell).toLowerCase().includes(wanted));
}

function table(rows, view, study) {
  const { writable } = study;
  const heading = (text) => el("th", { scope: "col" }, text);
  const extra = [];
  if (view.levels) extra.push(["Noise level", "level"]);
  if (view.tasks) extra.push(["Task", "task"]);
  if (view.vehicle_names.length) extra.push(["Measured by", "who"]);
  if (view.measurements.some((row) => row.repeats)) extra.push(["Repeats", "repeats"]);
  const headings = el("tr", {}, heading("#"), view.labels ? heading("Place") : null, view.columns.map((column) => heading(column.label)), heading(view.quantity_label ?? "Value"),
    writable ? heading(el("span", { class: "visually-hidden" }, "Change")) : null,
    extra.map(([label]) => heading(label)), heading("±"), heading("Cost"), heading("Spent"));
  const change = (row) => el("td", {}, row.failed ? null : el("button", { class: "quiet", type: "button", "aria-label": `Correct measurement ${row.id}`,
    onclick: () => openCorrection(row, view, study) }, "Correct"));
  const value = (row) => (row.failed
    ? el("td", {}, el("span", { class: "badge broken" }, "failed"), row.reason ? el("small", {}, ` ${row.reason}`) : null)
    : el("td", {}, el("b", {}, row.values ? measuredText(row.values) : number(row.value, 5)), isLeftOut(row, view) ? el("small", {}, " left out") : null, waitingCorrection(row, view)));
  const body = rows.map((row) => el("tr", { "data-id": row.id },
    el("th", { scope: "row" }, `${row.id}`), view.labels ? el("td", {}, isNamed(row) ? String(row.label) : "–") : null, view.columns.map((column) => el("td", {}, formatCoordinate(row.point[column.name], column))), value(row),
    writable ? change(row) : null,
    extra.map(([, key]) => el("td", {}, `${row[key] ?? "–"}`)),
    el("td", {}, number(Math.sqrt(row.noise), 3)), el("td", {}, number(row.cost), row.cost_told === false ? el("small", {}, " expected") : null), el("td", {}, number(row.spent))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of measurements" },
    el("table", {}, el("caption", { class: "visually-hidden" }, "Measurements, newest first"), el("thead", {}, headings), el("tbody", {}, body)));
}

// The last correction of a measurement that waits to be sent, if there is one.
const lastCorrection = (row, view) => unsent(view.name).findLast((each) => each.verb === "correct" && each.body.id === row.id && !each.error);

function waitingCorrection(row, view) {
  const sent = lastCorrection(row, view);
  return sent ? el("small", {}, ` ${measuredText(sent.body.y)} waits to be sent`) : null;
}

function openCorrection(row, view, { act, tell }) {
  const alert = el("p", { class: "alert", role: "alert" });
  const was = lastCorrection(row, view)?.body.y ?? row.value; // what the value is once everything before is sent
  const measured = measuredInputs(view.quantities, "Value", "the study is recomputed as if this value had been entered at first");
  const known = row.values ?? {};
  measured.inputs.forEach((input, k) => { input.value = String((view.quantities.length ? known[view.quantities[k]] : was) ?? ""); });
  const save = el("button", { class: "main", type: "submit" }, "Correct");
  const withdraw = el("button", { type: "button", class: "danger", onclick: () => runWithButton(withdraw, alert, async () => {
    await act("withdraw", { id: row.id });
    announce(`Measurement ${row.id} is withdrawn`);
    dialog.close();
  }) }, "Withdraw");
  const repeats = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", required: true });
  const add = el("button", { type: "submit" }, "Add repeats");
  const key = newKey();
  const dialog = el("dialog", { "aria-labelledby": "correction-title", onclose: () => dialog.remove() },
    el("h2", { id: "correction-title" }, `Measurement ${row.id}`), el("p", { class: "note" }, formatPlace(row, view.columns)),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      runWithButton(save, alert, async () => {
        const y = measured.read();
        const removed = Object.fromEntries(view.quantities.map((name) => [name, null])); // by emptying its field
        const body = view.quantities.length ? { id: row.id, y: { ...removed, ...y } } : { id: row.id, y, was };
        const answer = await tell("correct", body, `measurement ${row.id} corrected to ${measuredText(y)}`);
        announce(answer ? `Measurement ${row.id} is corrected` : `The correction of measurement ${row.id} is kept in this browser`);
        dialog.close();
      });
    } }, ...measured.fields,
    el("p", { class: "row" }, save, withdraw)),
    view.quantities.length ? null : el("form", { onsubmit: (event) => {
      event.preventDefault();
      runWithButton(add, alert, async () => {
        const values = readNumbers(repeats, "The repeats");
        await tell("tell-repeats", { id: row.id, values, key }, `${values.join(", ")} at ${formatPlace(row, view.columns)}`);
        announce(`${countNoun(values.length, "repeat")} of measurement ${row.id} saved`);
        dialog.close();
      });
    } }, field("Measured again at the same place", repeats, "values, separated by spaces"), el("p", { class: "row" }, add)),
    alert, el("p", { class: "row" }, el("span", { class: "grow" }), el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel")));
  document.body.append(dialog);
  dialog.showModal();
  measured.inputs[0].select();
}
