// Numbers, places and times as people write them.

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(digits - 2).split("e");
    return `${Number(mantissa)}e${Number(exponent)}`.replaceAll("-", "−");
  }
  if (size >= 1e4) return Math.round(value).toLocaleString("en-GB").replace("-", "−");
  return String(Number(value.toPrecision(digits))).replace("-", "−");
}

// "7,3" and "−7.3" are numbers too: that is what phones offer.
export function parse(text) {
  let plain = text.trim().replace("−", "-");
  if (/^[^.]*,[^.,]*$/.test(plain)) plain = plain.replace(",", ".");
  return plain === "" ? NaN : Number(plain);
}

export function place(point, columns) {
  return columns.map((column) => `${spoken(column)} ${number(point[column.name], 5)}${unit(column)}`).join(", ");
}

const split = (column) => column.label.match(/^(.*) \(([^)]+)\)$/);
export const spoken = (column) => split(column)?.[1] ?? column.label;
export function unit(column) {
  const found = split(column)?.[2];
  return found ? ` ${found}` : "";
}

export const plural = (count, word) => `${count.toLocaleString("en-GB")} ${word}${count === 1 ? "" : "s"}`;

export function when(time) {
  if (time === null || time === undefined) return "–";
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time ?? "");
  const seconds = (Date.now() - date.getTime()) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
