// The three ways to end a suggestion without a value, each with what it does.

import { el, field, runWithButton } from "./dom.js";
import { formatPlace } from "./places.js";

// `study` has act() and tell(), see suggestions.js; `attemptCost()` returns {cost} if one was entered. Messages go to
// `message`, errors to `alert`.
export function notMeasured({ act, current, tell }, suggestion, attemptCost, message, alert) {
  const why = el("input", { type: "text", autocomplete: "off", maxlength: 2000 });
  const place = formatPlace(suggestion, current().columns);
  const row = (label, effect, done, report) => {
    const button = el("button", { type: "button", onclick: () => runWithButton(button, alert, async () => {
      const text = why.value.trim();
      const answer = await report({ id: suggestion.id, ...(text ? { reason: text } : {}) });
      message.textContent = answer ? done : `Kept in this browser: suggestion ${suggestion.id} was not measured. It is sent when the server can be reached.`;
    }) }, label);
    return el("li", {}, button, el("p", { class: "note" }, effect));
  };
  return el("fieldset", { class: "not-measured" }, el("legend", {}, "Not measured?"),
    field("Reason", why, "for the history, if you like"),
    el("ul", {},
      row("Cannot be measured here", "This place is left out from now on, until you allow it again. It costs nothing.",
        `Excluded: ${place}. It is not suggested again until allowed.`,
        (body) => tell("exclude", body, `cannot be measured: ${place}`)),
      row("The measurement failed", "You tried, and got no value. The cost counts, the place is left out until you allow it again, and the study learns where attempts are likely to fail.",
        `Recorded: the measurement at ${place} failed. It is not suggested again until allowed.`,
        (body) => tell("fail", { ...body, ...attemptCost() }, `failed at ${place}`)),
      row("Withdraw this suggestion", "You do not measure it now. Nothing is recorded about the place, which may be suggested again.",
        `Suggestion ${suggestion.id} is withdrawn. It may be suggested again.`,
        (body) => act("withdraw", { ...body, again: true }))));
}
