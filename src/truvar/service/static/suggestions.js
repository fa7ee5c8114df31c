// The panel "Next measurement": request suggestions, enter their values, or enter the value of another point.

import { announce, el, field, numberInput, replace, runWithButton } from "./dom.js";
import { columnName, countNoun, formatPoint, formatValue, number, parseNumber, unit } from "./format.js";

// `pick(point)` of the result puts a point, such as one chosen on the map, into the form for another point.
export function suggestionsPanel(current, writable, act, check, limits) {
  const alert = el("p", { class: "alert", role: "alert" });
  const message = el("p", { class: "message", role: "status" });
  const batchSize = el("input", { type: "number", class: "narrow", min: 1, max: limits.batch, value: 1, "aria-label": "Number of suggestions" });
  const vehicle = vehicleChoice(current());
  const button = el("button", { class: "main", type: "submit" }, "Suggest next");
  const askForm = el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    message.textContent = "";
    runWithButton(button, alert, async () => {
      const { suggestions } = await act("ask", { n: Number(batchSize.value) || 1, ...(vehicle ? { who: vehicle.value } : {}) });
      const points = suggestions.map((suggestion) => formatPoint(suggestion.point, current().columns));
      announce(`${countNoun(suggestions.length, "suggestion")}: ${points.join("; ")}`);
      const first = list.querySelector(`[data-id="${suggestions[0].id}"]`);
      if (matchMedia("(pointer: fine)").matches) first?.querySelector("input")?.focus();
      else first?.scrollIntoView({ block: "nearest" });
    }).finally(redraw);
  } }, button, batchSize, vehicle);
  const list = el("ol", { class: "suggestions", "aria-label": "Pending suggestions" });
  const hint = el("p", { class: "note" });
  const otherPoint = otherPointForm(current, act, check, message);
  const exclusions = exclusionList(current, writable, act, message);
  const node = el("div", {}, el("h2", {}, "Next measurement"), writable ? askForm : null, alert, message, hint, list, writable ? otherPoint.node : null, exclusions.node);

  function redraw() {
    const view = current();
    button.disabled = view.state === "finished";
    const items = new Map([...list.children].map((item) => [item.dataset.id, item]));
    replace(list, view.pending.map((suggestion) => items.get(String(suggestion.id)) ?? suggestionCard(suggestion, view, writable, act, check, message)));
    hint.textContent = hintFor(view);
    exclusions.redraw();
  }
  return { node, redraw, pick: otherPoint.pick };
}

// A choice among the vehicles of a study; null if it has none.
function vehicleChoice(view, none) {
  if (!view.vehicle_names.length) return null;
  return el("select", { "aria-label": "Vehicle" }, none ? el("option", { value: "" }, none) : null,
    view.vehicle_names.map((name) => el("option", { value: name }, name)));
}

function hintFor(view) {
  if (view.pending.length) return "";
  if (view.state === "finished") return `Nothing is left to measure: ${view.result.reason}.`;
  if (view.result.steps) return "No suggestion is pending.";
  return "No measurements yet. Request a first suggestion, or enter a value that you have measured.";
}

// A suggestion and the form for its value. It is made once, so that input is kept when others change the study.
function suggestionCard(suggestion, view, writable, act, check, message) {
  const alert = el("p", { class: "alert", role: "alert" });
  const coordinates = view.columns.map((column) =>
    el("span", {}, el("b", {}, `${columnName(column)} `), `${formatValue(suggestion.point[column.name])}${unit(column)}`));
  const facts = [`#${suggestion.id}`, `cost ${number(suggestion.cost)}`];
  if (suggestion.level !== null) facts.push(`noise level ${suggestion.level} (variance ${number(suggestion.noise)})`);
  if (suggestion.task !== null) facts.push(`measure ${suggestion.task}`);
  if (suggestion.who) facts.push(`for ${suggestion.who}`);
  const item = el("li", { class: "suggestion", "data-id": suggestion.id },
    el("p", { class: "coordinates" }, coordinates), el("p", { class: "note" }, facts.join(" · ")));
  if (!writable) return item;

  const value = numberInput({ required: true });
  const cost = numberInput();
  const noise = numberInput();
  const save = el("button", { class: "main", type: "submit" }, "Save");
  const question = confirmation(value);
  const reason = el("input", { type: "text", autocomplete: "off", maxlength: 2000 });
  const place = formatPoint(suggestion.point, view.columns);
  const outcome = (label, verb, more, done) => {
    const button = el("button", { type: "button", class: "quiet danger", onclick: () => runWithButton(button, alert, async () => {
      const why = reason.value.trim();
      await act(verb, { id: suggestion.id, ...(why ? { reason: why } : {}), ...more() });
      message.textContent = done;
    }) }, label);
    return button;
  };
  const attemptCost = () => (cost.value.trim() ? { cost: readNumber(cost, "The cost") } : {});
  const exclude = outcome("Cannot be measured here", "exclude", () => ({}), `Excluded: ${place}. It is not suggested again until allowed.`);
  const failed = outcome("The measurement failed", "fail", attemptCost, `Recorded: the measurement at ${place} failed. It is not suggested again until allowed.`);
  const withdraw = outcome("Withdraw this suggestion", "withdraw", () => ({ again: true }), `Suggestion ${suggestion.id} is withdrawn. It may be suggested again.`);
  item.append(el("form", { onsubmit: (event) => {
    event.preventDefault();
    runWithButton(save, alert, async () => {
      const body = { id: suggestion.id, ...measurementBody(value, cost, noise) };
      if (!(await question.isConfirmed(body, check))) return;
      await act("tell", body);
      message.textContent = `Saved: ${value.value.trim()} at ${formatPoint(suggestion.point, view.columns)}.`;
    });
  } }, field("Measured value", value), save, question.node, alert,
  el("details", {}, el("summary", {}, "More, or not measured"), el("div", { class: "fields" }, field("Actual cost", cost), field("Noise variance", noise)),
    field("Reason", reason, "if it was not measured"), el("p", { class: "row" }, exclude, failed, withdraw))));
  return item;
}

// The places that are not suggested, each with a button to allow it again.
function exclusionList(current, writable, act, message) {
  const alert = el("p", { class: "alert", role: "alert" });
  const summary = el("summary", {});
  const list = el("ul", { class: "exclusions", "aria-label": "Excluded places" });
  const node = el("details", { hidden: true }, summary, list, alert);
  function item({ text, reason, place }) {
    const button = el("button", { type: "button", class: "quiet", "aria-label": `Allow ${text} again`, onclick: () => runWithButton(button, alert, async () => {
      await act("allow", place);
      message.textContent = `Allowed again: ${text}.`;
    }) }, "Allow again");
    return el("li", {}, `${text}${reason ? ` (${reason})` : ""} `, writable ? button : null);
  }
  function redraw() {
    const { exclusions } = current();
    node.hidden = exclusions.length === 0;
    summary.textContent = `Not suggested: ${countNoun(exclusions.length, "place")}`;
    replace(list, exclusions.map(item));
  }
  return { node, redraw };
}

// Asks again before a value is saved that may be a typing mistake. A second "Save" of the same value confirms it.
function confirmation(value) {
  const node = el("p", { class: "warning", role: "alert", hidden: true });
  let asked = null;
  function reset() {
    node.hidden = true;
    asked = null;
  }
  value.addEventListener("input", reset);
  async function isConfirmed(body, check) {
    const content = JSON.stringify([body.id, body.point, body.y]);
    if (asked === content) return true;
    const warnings = await check(body);
    if (!warnings.length) return true;
    asked = content;
    node.textContent = `${warnings[0]}. Is it a typing mistake? Correct it, or save again to keep it.`;
    node.hidden = false;
    return false;
  }
  return { node, isConfirmed, reset };
}

function measurementBody(value, cost, noise) {
  const body = { y: readNumber(value, "The measured value") };
  if (cost.value.trim()) body.cost = readNumber(cost, "The cost");
  if (noise.value.trim()) body.noise = readNumber(noise, "The noise variance");
  return body;
}

// Returns the number in an input, or marks the input as invalid and throws.
export function readNumber(input, label) {
  const value = parseNumber(input.value);
  const valid = Number.isFinite(value);
  input.setAttribute("aria-invalid", String(!valid));
  if (valid) return value;
  input.focus();
  throw new Error(`${label} must be a number, got “${input.value}”.`);
}

// The input of a coordinate: a list of choices, a date, or a number.
function coordinateInput(column) {
  if (column.choices) return el("select", {}, column.choices.map((choice, k) => el("option", { value: k }, String(choice))));
  if (column.date) return el("input", { type: column.date === "day" ? "date" : "datetime-local", required: true });
  return numberInput({ required: true });
}

function readValue(input, column) {
  if (column.choices) return column.choices[Number(input.value)];
  return column.date ? input.value : readNumber(input, column.label);
}

function inputText(column, value) {
  if (column.choices) return String(column.choices.indexOf(value));
  return column.date ? value : String(Number(value.toPrecision(10)));
}

// The form for the value of a point that was not suggested.
function otherPointForm(current, act, check, message) {
  const alert = el("p", { class: "alert", role: "alert" });
  const view = current();
  const coordinates = view.columns.map(coordinateInput);
  const value = numberInput({ required: true });
  const level = view.levels && el("select", {}, view.levels.map((l, k) => el("option", { value: k }, `${k}: variance ${l.variance === null ? "by place" : number(l.variance)}, cost ${number(l.cost)}`)));
  const task = view.tasks && el("select", {}, view.tasks.map((name) => el("option", { value: name }, name)));
  const vehicle = vehicleChoice(view, "none of them");
  const cost = numberInput();
  const save = el("button", { type: "submit" }, "Save");
  const question = confirmation(value);
  const node = el("details", {}, el("summary", {}, "Enter the value of another point"),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      runWithButton(save, alert, async () => {
        const point = Object.fromEntries(view.columns.map((column, k) => [column.name, readValue(coordinates[k], column)]));
        const body = { point, y: readNumber(value, "The measured value"), key: idempotencyKey(point, value.value) };
        if (level) body.level = Number(level.value);
        if (task) body.task = task.value;
        if (vehicle?.value) body.who = vehicle.value;
        if (cost.value.trim()) body.cost = readNumber(cost, "The cost");
        if (!(await question.isConfirmed(body, check))) return;
        await act("tell", body);
        question.reset();
        message.textContent = `Saved: ${value.value.trim()} at ${formatPoint(point, view.columns)}.`;
        lastSent = null;
        value.value = "";
      });
    } }, el("p", { class: "note" }, "Type the coordinates, or choose a point on the map."),
    el("div", { class: "fields" }, view.columns.map((column, k) => field(column.label, coordinates[k])), field("Measured value", value),
      level ? field("Noise level", level) : null, task ? field("Task", task) : null, vehicle ? field("Measured by", vehicle) : null,
      field("Actual cost", cost)), question.node, alert, save));

  // Every attempt to send the same value carries the same key, so that the value counts once.
  let lastSent = null;
  function idempotencyKey(point, y) {
    const content = JSON.stringify([point, y]);
    if (lastSent?.content !== content) {
      const bytes = crypto.getRandomValues(new Uint8Array(16));
      lastSent = { content, key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
    }
    return lastSent.key;
  }

  function pick(point) {
    node.open = true;
    view.columns.forEach((column, k) => { coordinates[k].value = inputText(column, point[column.name]); });
    value.focus({ preventScroll: !matchMedia("(pointer: fine)").matches });
    announce(`Chosen: ${formatPoint(point, view.columns)}`);
  }
  return { node, pick };
}
