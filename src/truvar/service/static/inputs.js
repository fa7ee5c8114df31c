// Inputs for numbers and coordinates, and what was typed into them.

import { el, numberInput } from "./dom.js";
import { parseNumber, valueAt } from "./format.js";

// Returns the number in an input, or marks the input as invalid and throws.
export function readNumber(input, label) {
  const value = parseNumber(input.value);
  const valid = Number.isFinite(value);
  input.setAttribute("aria-invalid", String(!valid));
  if (valid) return value;
  input.focus();
  throw new Error(`${label} must be a number, got “${input.value}”.`);
}

// Returns the numbers in an input, separated by spaces or semicolons; none if it is empty.
export function readNumbers(input, label) {
  const texts = input.value.split(/[\s;]+/).filter(Boolean);
  const values = texts.map(parseNumber);
  const wrong = values.findIndex((value) => !Number.isFinite(value));
  input.setAttribute("aria-invalid", String(wrong >= 0));
  if (wrong < 0) return values;
  input.focus();
  throw new Error(`${label} must be numbers separated by spaces, got “${texts[wrong]}”.`);
}

// The input of a coordinate: a list of choices, a date, or a number.
export function coordinateInput(column) {
  if (column.choices) return el("select", {}, column.choices.map((choice, k) => el("option", { value: k }, String(choice))));
  if (column.date === "day") return el("input", { type: "date", required: true });
  if (column.date === "time") return el("input", { type: "datetime-local", step: 1, required: true });
  if (column.date) return el("input", { type: "text", placeholder: valueAt(column, column.low), required: true });
  return numberInput({ required: true });
}

export function readCoordinate(input, column) {
  if (column.choices) return column.choices[Number(input.value)];
  return column.date ? input.value : readNumber(input, column.label);
}

// A value of a column as its input takes it.
export function inputText(column, value) {
  if (column.choices) return String(column.choices.indexOf(value));
  return column.date ? value : String(Number(value.toPrecision(10)));
}

// A coordinate as text, such as a cell of a table that was pasted; throws if it is not one of the column.
export function parseCoordinate(text, column) {
  if (column.choices) {
    const found = column.choices.find((choice) => String(choice) === text);
    if (found === undefined) throw new Error(`${column.label} must be one of ${column.choices.join(", ")}, got “${text}”.`);
    return found;
  }
  if (column.date) return text;
  const value = parseNumber(text);
  if (!Number.isFinite(value)) throw new Error(`${column.label} must be a number, got “${text}”.`);
  return value;
}
