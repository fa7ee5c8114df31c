// Tabs: one of several panels is shown; arrow keys move between them.

import { el } from "./dom.js";

// entries: [[name, title, panel], ...]. `onSelect(name)` is called when a panel is shown. Returns {node, selected()}.
export function tabs(label, entries, onSelect) {
  let selected = entries[0][0];
  const buttons = new Map();
  const panels = new Map();
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": label });
  for (const [name, title, content] of entries) {
    const button = el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => select(name) }, title);
    const panel = el("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, class: "panel" }, content);
    buttons.set(name, button);
    panels.set(name, panel);
    list.append(button);
  }

  function mark() {
    for (const [name, button] of buttons) {
      button.setAttribute("aria-selected", String(name === selected));
      button.tabIndex = name === selected ? 0 : -1;
      panels.get(name).hidden = name !== selected;
    }
  }

  function select(name) {
    selected = name;
    mark();
    onSelect(name);
  }

  list.addEventListener("keydown", (event) => {
    const names = entries.map(([name]) => name);
    const at = names.indexOf(selected);
    const target = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: names.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    select(names[(target + names.length) % names.length]);
    buttons.get(selected).focus();
  });
  mark();
  return { node: el("div", {}, list, [...panels.values()]), selected: () => selected };
}
