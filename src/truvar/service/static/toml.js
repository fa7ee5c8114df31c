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

// sections: {section: {key: value}}. Values that are undefined and sections without any are left out.
export function toToml(sections) {
  return Object.entries(sections).map(([section, table]) => {
    const lines = Object.entries(table).filter(([, item]) => item !== undefined).map(([name, item]) => `${key(name)} = ${value(item)}`);
    return lines.length ? `[${section}]\n${lines.join("\n")}\n` : "";
  }).filter(Boolean).join("\n");
}
