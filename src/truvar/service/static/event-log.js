// What happened, who said so, and remarks.

import { get, of } from "./api.js";
import { busy, el, field, replace } from "./dom.js";
import { number, when } from "./format.js";

export function journal(name, writable, act) {
  const list = el("ol", {});
  const alert = el("p", { class: "alert", role: "alert" });
  const text = el("input", { type: "text", maxlength: 2000, autocomplete: "off" });
  const save = el("button", { type: "submit" }, "Note");
  const form = el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    if (text.value.trim()) busy(save, alert, async () => { await act("note", { text: text.value.trim() }); text.value = ""; });
  } }, el("div", { class: "grow" }, field("A remark", text)), save);
  const details = el("details", { ontoggle: () => redraw() }, el("summary", {}, "Journal and remarks"), writable ? form : null, alert, list);

  async function redraw() {
    if (!details.open) return;
    const { events } = await get(`${of(name)}/events?newest=100`);
    replace(list, events.map((event) => el("li", {}, words(event), el("span", { class: "note" }, `${when(event.time)} · ${event.who}`))));
  }
  return { node: details, redraw: () => { redraw().catch((error) => { alert.textContent = error.message; }); } };
}

function words({ kind, details }) {
  const at = details.point ? ` at ${Object.entries(details.point).map(([name, value]) => `${name} ${number(value, 5)}`).join(", ")}` : "";
  switch (kind) {
    case "created": return "The study was created.";
    case "asked": return `#${details.id} suggested${at}.`;
    case "told": return `#${details.id} measured${at}: ${number(details.y, 6)}.`;
    case "corrected": return `#${details.id} corrected to ${number(details.y, 6)}.`;
    case "withdrawn": return `#${details.id} withdrawn.`;
    case "expired": return `#${details.id} expired.`;
    case "noted": return `“${details.text}”`;
    default: return `${kind[0].toUpperCase()}${kind.slice(1)}.`;
  }
}
