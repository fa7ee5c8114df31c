// Values as TOML.

const key = (name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name));

function quoted(text) {
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f"); // the escapes of JSON are those of TOML
}

function value(item) {
  if (Array.isArray(item)) return `[${item.map(value).join(", ")}]`;
  if (typeof item === "object") return `{${Object.entries(item).map(([name, inner]) => `${key(name)} = ${value(inner)}`).join(", ")}}`;
  return typeof item === "string" ? quoted(item) : String(item);
}

const lines = (table) => Object.entries(table).filter(([, item]) => item !== undefined).map(([name, item]) => `${key(name)} = ${value(item)}\n`).join("");

// sections: {section: {key: value}}, top: {key: value} above them. Values that are undefined and sections without any are left out.
export function toToml(sections, top = {}) {
  const tables = Object.entries(sections).map(([section, table]) => (lines(table) ? `[${section}]\n${lines(table)}` : ""));
  return [lines(top), ...tables].filter(Boolean).join("\n");
}
