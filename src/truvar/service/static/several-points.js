// The form for several points: one line each, typed or pasted from a table.

import { el, field, runWithButton } from "./dom.js";
import { countNoun, formatPoint, number, parseNumber, valueAt } from "./format.js";
import { parseCoordinate } from "./inputs.js";
import { newKey } from "./offline-queue.js";
import { withLabel } from "./places.js";

export function severalPointsForm({ current, tell }, message) {
  const { columns, labels } = current();
  const names = [...columns.map((column) => column.name), "value"];
  const alert = el("p", { class: "alert", role: "alert" });
  const text = el("textarea", { class: "code short", spellcheck: "false", placeholder: labels ? "name\tvalue" : names.join("\t"), required: true });
  const save = el("button", { type: "submit" }, "Save all");
  let keys = []; // of the lines, in order: an attempt that is repeated sends the same ones
  text.addEventListener("input", () => { keys = []; });
  const submit = async () => {
    const rows = parseRows(text.value, current());
    while (keys.length < rows.length) keys.push(newKey());
    const pending = [...current().pending];
    let waiting = 0;
    for (const [k, { point, y, name }] of rows.entries()) { // lines that are saved disappear, those after a refused one stay
      const label = `${number(y, 6)} at ${name ?? formatPoint(point, columns)}`;
      // The value of a named place answers the suggestion that waits there.
      const answered = name === undefined ? -1 : pending.findIndex((suggestion) => String(suggestion.label) === name);
      const what = answered < 0 ? { point, key: keys[0] } : { id: pending.splice(answered, 1)[0].id };
      if ((await tell("tell", { ...what, y }, label)) === null) waiting += 1;
      keys.shift();
      text.value = rows.slice(k + 1).map((row) => row.line).join("\n");
    }
    message.textContent = waiting
      ? `${countNoun(waiting, "value")} kept in this browser, to be sent when the server can be reached.`
      : `${countNoun(rows.length, "value")} saved.`;
  };
  return el("details", { class: "several-points" }, el("summary", {}, "Enter several points"),
    el("form", { onsubmit: (event) => { event.preventDefault(); runWithButton(save, alert, submit); } },
      field("Points and values", text, `one line each: ${labels ? "name, value; or " : ""}${names.join(", ")}; separated by tabs, semicolons or spaces`), alert, save));
}

// The points and values of lines of text. All lines are read before anything is sent.
function parseRows(text, view) {
  const { columns } = view;
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const rows = [];
  for (const [k, line] of lines.entries()) {
    const cells = splitCells(line);
    if (k === 0 && (cells[0] === columns[0].name || isHeader(cells, view))) continue; // a line of column names
    const named = namedRow(line, view);
    if (named) {
      rows.push({ ...named, line });
      continue;
    }
    if (view.labels && cells.length === 2 && columns.length > 1) throw new Error(`Line ${k + 1}: no place is named “${cells[0]}”.`);
    if (cells.length !== columns.length + 1) {
      throw new Error(`Line ${k + 1} must have ${columns.length + 1} values (${columns.map((column) => column.name).join(", ")}, value), got ${cells.length}.`);
    }
    const y = parseNumber(cells.at(-1));
    if (!Number.isFinite(y)) throw new Error(`Line ${k + 1}: the value must be a number, got “${cells.at(-1)}”.`);
    const point = {};
    for (const [d, column] of columns.entries()) {
      try {
        point[column.name] = parseCoordinate(cells[d], column);
      } catch (error) {
        throw new Error(`Line ${k + 1}: ${error.message}`);
      }
    }
    rows.push({ point, y, line });
  }
  if (!rows.length) throw new Error("Enter at least one line.");
  return rows;
}

// Whether the cells, of the first line, are names of a column of places and one of values.
const isHeader = (cells, view) => view.labels && cells.length === 2 && withLabel(view, cells[0]) < 0 && Number.isNaN(parseNumber(cells[1]));

// A line that begins with the name of a place, which may have spaces, and ends with a value; null if it does not.
function namedRow(line, view) {
  const [, name, value] = line.match(/^(.*?)[\s;,]+(\S+)$/) ?? [];
  const k = name === undefined ? -1 : withLabel(view, name);
  const y = parseNumber(value ?? "");
  if (k < 0 || !Number.isFinite(y)) return null;
  return { point: Object.fromEntries(view.columns.map((column, d) => [column.name, valueAt(column, view.coordinates[d][k])])), y, name: view.labels[k] };
}

function splitCells(line) {
  for (const separator of ["\t", ";"]) if (line.includes(separator)) return line.split(separator).map((cell) => cell.trim());
  return line.split(/\s+/).map((cell) => cell.replace(/,$/, ""));
}
