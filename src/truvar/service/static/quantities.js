// Inputs for what was measured: a value, or one for each quantity of a study of several.

import { field, numberInput } from "./dom.js";
import { number } from "./format.js";
import { readNumber } from "./inputs.js";

// `names` are the quantities that are asked for. read() returns a number, or an object of numbers without those that are empty.
export function measuredInputs(names, label = "Measured value", note = undefined) {
  if (!names.length) {
    const value = numberInput({ required: true });
    return { inputs: [value], fields: [field(label, value, note)], read: () => readNumber(value, `The ${label.toLowerCase()}`) };
  }
  const inputs = names.map(() => numberInput());
  const read = () => {
    const entries = names.flatMap((name, k) => (inputs[k].value.trim() ? [[name, readNumber(inputs[k], `The value of ${name}`)]] : []));
    if (!entries.length) throw new Error("Enter the value of one quantity at least, or say that the measurement failed.");
    return Object.fromEntries(entries);
  };
  return { inputs, fields: names.map((name, k) => field(name, inputs[k])), read };
}

// What was measured, in words.
export const measuredText = (y) => (typeof y === "object" && y !== null
  ? Object.entries(y).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${number(value, 6)}`).join(", ")
  : number(y, 6));
