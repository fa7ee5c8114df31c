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

// A number with as many decimals as a spread of that size has with two digits.
export function withSpread(value, spread) {
  if (!Number.isFinite(value) || !(spread > 0) || !Number.isFinite(spread)) return number(value);
  const unit = 10 ** (Math.floor(Math.log10(spread)) - 1);
  return number(Number((Math.round(value / unit) * unit).toPrecision(12)), 12);
}

// A number between 0 and 1 with two digits; one just below 1 with three, rounded down.
export const share = (value) => (value < 0.995 || value >= 1 ? value.toFixed(2) : (Math.floor(1000 * value) / 1000).toFixed(3));

// An integer with all its digits, in groups of three.
export const count = (value) => value.toLocaleString("en-GB");

export const countNoun = (value, noun, plural = `${noun}s`) => `${count(value)} ${value === 1 ? noun : plural}`;

// Accepts "7,3" and "−7.3" too, which is what the keyboards of phones write.
export function parseNumber(text) {
  let plain = text.trim().replace("−", "-");
  if (/^[^.]*,[^.,]*$/.test(plain)) plain = plain.replace(",", ".");
  return plain === "" ? NaN : Number(plain);
}

export function formatPoint(point, columns) {
  return columns.map((column) => `${columnName(column)} ${formatCoordinate(point[column.name], column)}${unit(column)}`).join(", ");
}

// A value of a column with as many decimals as tell it from its neighbours, which the server says.
export function formatCoordinate(value, column) {
  const { decimals } = column;
  if (typeof value !== "number" || decimals === null || decimals === undefined) return formatValue(value, 6);
  const rounded = Number(value.toFixed(decimals)) || 0; // never −0
  return rounded.toLocaleString("en-GB", { maximumFractionDigits: decimals }).replace("-", "−");
}

// A value of a column: a number, or the text of a category, a Boolean or a date.
export const formatValue = (value, digits = 5) => (typeof value === "number" ? number(value, digits) : String(value));

const DAY = 86400000; // milliseconds

// The position of a value on the axis of its column, and the value at a position.
export function position(column, value) {
  if (column.choices) return column.choices.indexOf(value);
  return column.date ? datePosition(value) : value;
}

// The days since 1970 of a date, which is UTC unless it has an offset; Date.parse has milliseconds, dates microseconds.
function datePosition(text) {
  const [, seconds, fraction = "", offset = ""] = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/.exec(text);
  if (!text.includes("T")) return Date.parse(text) / DAY;
  return (Date.parse(seconds + (offset || "Z")) + Number(`0.${fraction || 0}`) * 1000) / DAY;
}

// The offset of a time zone from UTC at a time, such as "+02:00".
function offsetAt(timezone, time) {
  if (/^[+-]/.test(timezone)) return timezone;
  const parts = new Intl.DateTimeFormat("en-GB", { timeZone: timezone, timeZoneName: "longOffset" }).formatToParts(time);
  return parts.find((part) => part.type === "timeZoneName").value.slice("GMT".length) || "+00:00";
}

// The date at a position, with as many digits as the server writes: those of seconds, or of microseconds.
function dateText(column, at) {
  const day = Math.floor(at);
  const microseconds = Math.round((at - day) * DAY * 1000);
  const time = day * DAY + Math.floor(microseconds / 1e6) * 1000;
  const isoAt = (milliseconds) => new Date(milliseconds).toISOString();
  if (column.date === "day") return isoAt(time).slice(0, 10);
  const left = microseconds % 1e6;
  const fraction = left ? `.${String(left).padStart(6, "0")}` : "";
  if (!column.timezone) return isoAt(time).slice(0, 19) + fraction;
  const offset = offsetAt(column.timezone, time);
  const [hours, minutes] = offset.slice(1).split(":").map(Number);
  const shift = (offset.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60000;
  return isoAt(time + shift).slice(0, 19) + fraction + offset;
}

export function valueAt(column, at) {
  if (column.choices) return column.choices[Math.max(0, Math.min(Math.round(at), column.choices.length - 1))];
  return column.date ? dateText(column, at) : at;
}

// The text of a tick mark; a tick between two categories has none.
export function tickText(column, tick) {
  if (column.choices && (!Number.isInteger(tick) || tick < 0 || tick >= column.choices.length)) return "";
  return formatValue(valueAt(column, tick), 4);
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
