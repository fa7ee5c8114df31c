// The history of a study: its event log with times and names, and notes.

import { get, studyPath } from "./api.js";
import { el, field, replace, runWithButton, showAlert } from "./dom.js";
import { formatTime, number } from "./format.js";
import { measuredText } from "./quantities.js";

const SHOWN_EVENTS = 100; // the newest ones
const LONGEST_NOTE = 2000; // characters

export function eventLogPanel(name, writable, act) {
  const list = el("ol", {});
  const alert = el("p", { class: "alert", role: "alert" });
  const text = el("input", { type: "text", maxlength: LONGEST_NOTE, autocomplete: "off" });
  const save = el("button", { type: "submit" }, "Add");
  const form = el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    if (!text.value.trim()) return;
    runWithButton(save, alert, async () => {
      await act("note", { text: text.value.trim() });
      text.value = "";
    });
  } }, el("div", { class: "grow" }, field("Note", text)), save);
  const details = el("details", { ontoggle: () => redraw() }, el("summary", {}, "History and notes"), writable ? form : null, alert, list);

  async function load() {
    const { events } = await get(`${studyPath(name)}/events?newest=${SHOWN_EVENTS}`);
    replace(list, events.map((event) => el("li", {}, describe(event), el("span", { class: "note" }, `${formatTime(event.time)} · ${event.who}`))));
  }
  function redraw() {
    if (details.open) load().catch((error) => showAlert(alert, error));
  }
  return { node: details, redraw };
}

const because = (details) => (details.reason ? ` (${details.reason})` : "");

function describe({ kind, details, label = null }) {
  const numbers = Object.entries(details.point ?? {}).map(([name, value]) => `${name} ${number(value, 5)}`).join(", ");
  const coordinates = label === null ? numbers : `${label} (${numbers})`;
  const at = coordinates && ` at ${coordinates}`;
  switch (kind) {
    case "created": return "The study was created.";
    case "asked": return `#${details.id} suggested${at}.`;
    case "told": return `#${details.id} measured${at}: ${measuredText(details.y)}${details.reference ? `, raw data in ${details.reference}` : ""}.`;
    case "corrected": return `#${details.id} corrected to ${measuredText(details.y)}.`;
    case "withdrawn": return `#${details.id} withdrawn${because(details)}.`;
    case "failed": return `#${details.id} failed${at}${because(details)}.`;
    case "excluded": return `Excluded${coordinates ? `: ${coordinates}` : " a region"}${because(details)}.`;
    case "allowed": return `Allowed again${coordinates ? `: ${coordinates}` : ""}.`;
    case "extended": return `The domain was extended: ${details.text}${because(details)}.`;
    case "expired": return `#${details.id} expired.`;
    case "fitted": return "The model was fitted to another data set.";
    case "exhausted": return "No measurement would gain anything more.";
    case "noted": return `“${details.text}”`;
    default: return `${kind[0].toUpperCase()}${kind.slice(1)}.`;
  }
}
