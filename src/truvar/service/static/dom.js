// Elements. Text is only ever set as text, so that nothing a user wrote is read as markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Attributes that are null, undefined or false, and such children, are left out.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (isAbsent(value)) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in node) node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...present(children));
  return node;
}

const isAbsent = (value) => value === null || value === undefined || value === false;
const isText = (child) => typeof child === "string";
const present = (children) => children.flat(Infinity).filter((child) => !isAbsent(child))
  .map((child) => (isText(child) ? visible(child) : child));

// Control characters and changes of the direction of text, which a name of an earlier release may have, are written out.
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/g; // eslint-disable-line no-control-regex
export const visible = (text) => text.replace(CONTROL, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`);

// Gives a node these children. Those it has already stay in the document: an input that is taken out, even for an
// instant, loses its focus, and a button that is being pressed loses the click.
export function replace(node, ...children) {
  const wanted = present(children);
  const kept = new Set(wanted);
  for (const child of [...node.childNodes]) if (!kept.has(child)) child.remove();
  let next = node.firstChild;
  for (const child of wanted) {
    if (child === next) next = next.nextSibling;
    else if (next) next.before(child);
    else node.append(child);
  }
}

let idCount = 0;
const uniqueId = (prefix) => `${prefix}-${++idCount}`;

// An input with its label and an optional note.
export function field(label, input, note) {
  input.id ||= uniqueId("field");
  return el("div", {}, el("label", { for: input.id }, label, note ? el("span", { class: "note" }, ` ${note}`) : null), input);
}

// An input for a number that also accepts what phones write, see `parseNumber`.
export const numberInput = (attributes = {}) => el("input", { type: "text", inputmode: "decimal", autocomplete: "off", ...attributes });

// Radio buttons in a row: [[value, label], ...].
export function radioButtons(legend, options, selected, onchange) {
  const name = uniqueId("choice");
  return el("fieldset", {}, el("legend", { class: "visually-hidden" }, legend),
    el("div", { class: "choice" }, options.map(([value, label]) =>
      el("label", {}, el("input", { type: "radio", name, value, checked: value === selected, onchange: () => onchange(value) }),
        el("span", {}, label)))));
}

// Text that screen readers read out.
export function announce(text) {
  document.getElementById("announcement").textContent = text;
}

// Shows an error; one that is about the connection alone goes when the server is reached again.
export function showAlert(alert, error) {
  alert.textContent = error.message;
  alert.toggleAttribute("data-connection", error.status === 0);
}

// Removes the errors that were about the connection alone, when the server is reached again.
export function clearConnectionAlerts() {
  for (const node of document.querySelectorAll("[data-connection]")) {
    node.textContent = "";
    node.removeAttribute("data-connection");
  }
}

// Disables the button while the work runs and shows its error in `alert`.
export async function runWithButton(button, alert, work) {
  alert.textContent = "";
  button.disabled = true;
  try {
    return await work();
  } catch (error) {
    showAlert(alert, error);
    return undefined;
  } finally {
    button.disabled = false;
  }
}
