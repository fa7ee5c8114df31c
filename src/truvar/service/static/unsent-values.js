// The bar below the header that shows values and other changes which wait to be sent, and those that the server refused.

import { el, replace } from "./dom.js";
import { countNoun, formatTime } from "./format.js";
import { discard, isValue, isVolatile, onUnsentChange, send, sendAgain, unsent } from "./offline-queue.js";

export function showUnsentValues(node) {
  const list = el("ul", { "aria-label": "Values that are not sent" });
  const summary = el("summary", {});
  const details = el("details", {}, summary, list);
  const button = el("button", { type: "button", onclick: () => send() }, "Send now");

  function redraw() {
    const items = unsent();
    const refused = items.filter((item) => item.error);
    const waiting = items.filter((item) => !item.error);
    node.hidden = items.length === 0;
    const texts = [];
    if (waiting.length) texts.push(`${counted(waiting)} kept in this browser until the server can be reached`);
    if (refused.length) texts.push(`${counted(refused)} refused by the server`);
    if (waiting.length && isVolatile()) texts.push("keep this page open: this browser stores nothing");
    summary.textContent = `${texts.join("; ")}.`;
    replace(list, items.map(row));
    replace(node, details, waiting.length ? button : null);
  }

  onUnsentChange(redraw);
  redraw();
  if (unsent().length) send();
}

const counted = (items) => countNoun(items.length, items.every(isValue) ? "value" : "change");

function row(item) {
  const text = `${item.study}: ${item.label}`;
  return el("li", {}, text, el("span", { class: "note" }, ` entered ${formatTime(item.entered)}`),
    item.error ? el("span", { class: "refusal" }, item.error) : null,
    item.error ? el("button", { type: "button", class: "quiet", "aria-label": `Send ${text} again`, onclick: () => sendAgain(item.number) }, "Send again") : null,
    item.error ? el("button", { type: "button", class: "quiet danger", "aria-label": `Discard ${text}`, onclick: () => discard(item.number) }, "Discard") : null);
}
