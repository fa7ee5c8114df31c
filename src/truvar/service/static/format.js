// Numbers, points and times as people read and write them.

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(digits - 2).split("e");
    return `${Number(mantissa)}e${Number(exponent)}`.replaceAll("-", "−");
  }
  if (size >= 1e4) return count(Math.round(value)).replace("-", "−");
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// A number between 0 and 1 with two digits; one just below 1 with three, rounded down.
export const share = (value) => (value < 0.995 || value >= 1 ? value.toFixed(2) : (Math.floor(1000 * value) / 1000).toFixed(3));

// An integer with all its digits, in groups of three.
export const count = (value) => value.toLocaleString("en-GB");

export const countNoun = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

// Accepts "7,3" and "−7.3" too, which is what the keyboards of phones write.
export function parseNumber(text) {
  let plain = text.trim().replace("−", "-");
  if (/^[^.]*,[^.,]*$/.test(plain)) plain = plain.replace(",", ".");
  return plain === "" ? NaN : Number(plain);
}

export function formatPoint(point, columns) {
  return columns.map((column) => `${columnName(column)} ${number(point[column.name], 5)}${unit(column)}`).join(", ");
}

// A label such as "depth (m)" has a name and a unit.
const splitLabel = (column) => column.label.match(/^(.*) \(([^)]+)\)$/);
export const columnName = (column) => splitLabel(column)?.[1] ?? column.label;
export function unit(column) {
  const symbol = splitLabel(column)?.[2];
  return symbol ? ` ${symbol}` : "";
}

export function formatTime(time) {
  if (time === null || time === undefined) return "–";
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const seconds = (Date.now() - date.getTime()) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
