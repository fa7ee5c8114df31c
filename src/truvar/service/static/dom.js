// Elements. Text is only ever set as text: nothing a user wrote is read as markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in node) node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

let count = 0;
export const unique = (prefix) => `${prefix}-${++count}`;

// A label with its field.
export function field(label, input, note) {
  input.id ||= unique("field");
  return el("div", {}, el("label", { for: input.id }, label, note ? el("span", { class: "note" }, ` ${note}`) : null), input);
}

// Radio buttons in a row: [[value, label], ...].
export function choice(legend, options, chosen, onchange) {
  const name = unique("choice");
  return el("fieldset", {}, el("legend", { class: "unseen" }, legend),
    el("div", { class: "choice" }, options.map(([value, label]) =>
      el("label", {}, el("input", { type: "radio", name, value, checked: value === chosen, onchange: () => onchange(value) }),
        el("span", {}, label)))));
}

// Told to screen readers.
export function say(text) {
  document.getElementById("said").textContent = text;
}

// While the work runs the button waits; what goes wrong stands in `alert`.
export async function busy(button, alert, work) {
  alert.textContent = "";
  button.disabled = true;
  try {
    return await work();
  } catch (error) {
    alert.textContent = error.message;
    return undefined;
  } finally {
    button.disabled = false;
  }
}
