// The panel "Next measurement": request suggestions, enter their values, or enter the values of other points.

import { announce, el, field, numberInput, replace, runWithButton } from "./dom.js";
import { columnName, countNoun, formatCoordinate, formatPoint, number, unit, valueAt, withSpread } from "./format.js";
import { coordinateInput, inputText, readCoordinate, readNumber, readNumbers } from "./inputs.js";
import { notMeasured } from "./not-measured.js";
import { newKey, unsent } from "./offline-queue.js";
import { formatPlace, isNamed, withLabel } from "./places.js";
import { measuredInputs, measuredText } from "./quantities.js";
import { severalPointsForm } from "./several-points.js";

const LEASES = [["", "no end"], ["3600", "1 hour"], ["14400", "4 hours"], ["28800", "8 hours"], ["86400", "1 day"], ["604800", "1 week"]];

// `study` has current(), writable, act(verb, body), tell(verb, body, label), check(body) and limits.
// `pick(point)` of the result puts a point, such as one chosen on the map, into the form for another point.
export function suggestionsPanel(study) {
  const { current, writable } = study;
  const message = el("p", { class: "message", role: "status" });
  const list = el("ol", { class: "suggestions", "aria-label": "Pending suggestions" });
  const hint = el("p", { class: "note" });
  const ask = askForm(study, message, list, () => redraw());
  const together = saveTogether(list, message);
  const otherPoint = otherPointForm(study, message);
  const several = severalPointsForm(study, message);
  const exclusions = exclusionList(study, message);
  const node = el("div", {}, el("h2", {}, "Next measurement"), writable ? ask.node : null, message, hint, list,
    writable ? together.node : null, writable ? otherPoint.node : null, writable && !current().quantities.length ? several : null, exclusions.node);

  function redraw() {
    const view = current();
    ask.button.disabled = view.state === "finished";
    const kept = new Map([...list.children].map((item) => [item.dataset.id, item]));
    replace(list, view.pending.map((suggestion) => {
      const item = kept.get(String(suggestion.id)) ?? suggestionCard(study, suggestion, message);
      item.update(suggestion, view);
      return item;
    }));
    hint.textContent = hintFor(view);
    together.redraw();
    exclusions.redraw();
  }
  return { node, redraw, pick: otherPoint.pick };
}

function askForm({ act, current, limits }, message, list, redraw) {
  const alert = el("p", { class: "alert", role: "alert" });
  const batchSize = el("input", { type: "number", class: "narrow", min: 1, max: limits.batch, value: 1 });
  const vehicle = vehicleChoice(current());
  const lease = el("select", {}, LEASES.map(([seconds, text]) => el("option", { value: seconds }, text)));
  const context = current().columns.filter((column) => column.context).map((column) => ({ column, input: coordinateInput(column) }));
  const button = el("button", { class: "main", type: "submit" }, "Suggest next");
  const node = el("form", { class: "ask", onsubmit: (event) => {
    event.preventDefault();
    message.textContent = "";
    runWithButton(button, alert, async () => {
      const body = { n: Number(batchSize.value) || 1 };
      if (vehicle) body.who = vehicle.value;
      if (lease.value) body.lease = Number(lease.value);
      if (context.length) body.context = Object.fromEntries(context.map(({ column, input }) => [column.name, readCoordinate(input, column)]));
      const { suggestions } = await act("ask", body);
      const points = suggestions.map((suggestion) => formatPlace(suggestion, current().columns));
      announce(`${countNoun(suggestions.length, "suggestion")}: ${points.join("; ")}`);
      const first = list.querySelector(`[data-id="${suggestions[0].id}"]`);
      if (list.contains(document.activeElement)) return; // somebody types already: the card was shown before the answer came
      if (matchMedia("(pointer: fine)").matches) first?.querySelector("input")?.focus();
      else first?.scrollIntoView({ block: "nearest" });
    }).finally(redraw);
  } }, context.map(({ column, input }) => field(column.label, input, "today, given")), button, alert,
  el("div", { class: "fields" }, field("Suggestions", batchSize), field("Reserved for", lease), vehicle ? field("Vehicle", vehicle) : null));
  return { node, button };
}

// A choice among the vehicles of a study; null if it has none.
export function vehicleChoice(view, none) {
  if (!view.vehicle_names.length) return null;
  return el("select", {}, none ? el("option", { value: "" }, none) : null,
    view.vehicle_names.map((name) => el("option", { value: name }, name)));
}

function hintFor(view) {
  if (view.pending.length) return "";
  if (view.state === "finished") return `Nothing is left to measure: ${view.result.reason}.`;
  if (view.result.steps) return "No suggestion is pending.";
  return "No measurements yet. Request a first suggestion, or enter a value that you have measured.";
}

// -- a suggestion ------------------------------------------------------------------------------------------------------

// The value that is expected of a suggestion, in words; null before there is a model.
function expectedText({ expected }, view) {
  if (!expected) return null;
  const text = (each, name, unitText) => {
    const [mean, low, high] = [each.mean, each.low, each.high].map((value) => withSpread(value, each.high - each.low));
    return `${name}${mean}${unitText} (95 %: ${low} to ${high})`;
  };
  const texts = expected.quantities
    ? Object.entries(expected.quantities).map(([name, each]) => text(each, `${name} `, ""))
    : [text(expected, "", view.unit ? ` ${view.unit}` : "")];
  return `Expected: ${texts.join(", ")}.`;
}

// Why a suggestion is where it is, in words.
function reasonText({ expected, lookahead }, view) {
  if (!lookahead) return "Why here: there is no model yet, and the first measurements are spread out to learn one from.";
  const reduction = `${number(100 * lookahead.variance_reduction, 2)} %`;
  const decided = lookahead.expected_decided;
  const points = decided >= 9.5 ? String(Math.round(decided)) : number(decided, 2);
  const what = view.level_set ? "decides about" : "rules out about";
  const about = view.map ? "all points together" : "the points that the policy has not decided yet";
  const parts = [`it removes ${reduction} of the uncertainty about ${about}`];
  if (decided >= 0.05) parts.push(`${what} ${points} of them`);
  const crossed = expected ? view.thresholds.find((threshold) => expected.low < threshold && threshold < expected.high) : undefined;
  if (crossed !== undefined) parts.push(`and may lie on either side of ${number(crossed)}`);
  return `Why here: ${parts.join(", ")}.`;
}

// The cost of a suggestion; where costs are learned, the expected one with its 95 % interval.
function costText({ cost, cost_interval: interval }) {
  return interval ? `expected cost ${number(cost, 3)} (${number(interval[0], 3)} to ${number(interval[1], 3)})` : `cost ${number(cost)}`;
}

// A suggestion and the form for its value. It is made once, so that input is kept when others change the study.
function suggestionCard(study, suggestion, message) {
  const { check, current, tell, writable } = study;
  const view = current();
  const alert = el("p", { class: "alert", role: "alert" });
  const coordinates = view.columns.map((column) =>
    el("span", {}, el("b", {}, `${columnName(column)} `), `${formatCoordinate(suggestion.point[column.name], column)}${unit(column)}`));
  const facts = [`#${suggestion.id}`, costText(suggestion)];
  if (suggestion.level !== null) facts.push(`noise level ${suggestion.level} (± ${number(Math.sqrt(suggestion.noise), 3)})`);
  if (suggestion.quantities && suggestion.quantities.length < view.quantities.length) facts.push(`measure ${suggestion.quantities.join(", ")}`);
  if (suggestion.task !== null) facts.push(`measure ${suggestion.task}`);
  if (suggestion.who) facts.push(`for ${suggestion.who}`);
  const expectation = el("p", { class: "expectation" });
  const reason = el("p", { class: "note" });
  const waiting = el("p", { class: "waiting", hidden: true });
  const repeated = el("p", { class: "note", hidden: true });
  const item = el("li", { class: "suggestion", "data-id": suggestion.id },
    isNamed(suggestion) ? el("h3", { class: "place" }, String(suggestion.label)) : null, el("p", { class: "coordinates" }, coordinates), el("p", { class: "note" }, facts.join(" · ")), repeated, expectation, reason, waiting);
  let form = null;
  item.update = (present, latest) => {
    expectation.textContent = expectedText(present, latest) ?? "";
    expectation.hidden = !expectation.textContent;
    reason.textContent = reasonText(present, latest);
    const name = isNamed(suggestion) ? suggestion.label : formatPoint(suggestion.point, latest.columns);
    repeated.textContent = present.times > 1 ? `${present.times} x ${name}: several measurements of one place` : "";
    repeated.hidden = !repeated.textContent;
    const sent = unsent(latest.name).find((each) => each.body.id === suggestion.id && !each.error);
    waiting.hidden = !sent;
    waiting.textContent = sent ? `Waits to be sent: ${sent.label}.` : "";
    if (form) form.hidden = Boolean(sent);
  };
  if (!writable) return item;

  const valueLabel = suggestion.outcome === "count" ? "Number of events" : view.quantity_label ?? "Measured value";
  const measured = measuredInputs(suggestion.quantities ?? [], valueLabel, suggestion.outcome === "binary" ? "1 for yes, 0 for no" : undefined);
  const further = el("input", { type: "text", inputmode: "decimal", autocomplete: "off" });
  const cost = numberInput();
  const noise = numberInput();
  const exposure = numberInput();
  const save = el("button", { class: "main", type: "submit" }, "Save");
  const question = confirmation(...measured.inputs);
  const place = formatPlace(suggestion, view.columns);
  const attemptCost = () => (cost.value.trim() ? { cost: readNumber(cost, "The cost") } : {});

  // One attempt to save has one key, so that its values count once however often they are sent.
  let key = newKey();
  async function submit() {
    const y = measured.read();
    const repeats = readNumbers(further, "The further values");
    const body = { id: suggestion.id, y, ...attemptCost() };
    if (noise.value.trim()) body.noise_sd = readNumber(noise, "The standard deviation");
    if (exposure.value.trim()) body.exposure = readNumber(exposure, "The exposure");
    if (!(await question.isConfirmed(body, check))) return false;
    const label = `${[y, ...repeats].map(measuredText).join(", ")} at ${place}`;
    if (repeats.length && (body.cost !== undefined || body.noise_sd !== undefined || body.exposure !== undefined)) {
      throw new Error("Repeated values count with the expected cost, noise and exposure; leave these out.");
    }
    const answer = repeats.length
      ? await tell("tell-repeats", { id: suggestion.id, values: [y, ...repeats], key }, label)
      : await tell("tell", body, label);
    key = newKey();
    message.textContent = answer ? `Saved: ${label}.` : `Kept in this browser: ${label}. It is sent when the server can be reached.`;
    return true;
  }
  const costField = field("Actual cost", cost, view.learns_cost ? "if known" : undefined);
  form = el("form", { onsubmit: (event) => { event.preventDefault(); runWithButton(save, alert, submit); } },
    ...measured.fields,
    suggestion.outcome === "count" ? field("Exposure", exposure, "if it is not the usual one") : null, view.learns_cost ? costField : null, save, question.node, alert,
    el("details", {}, el("summary", {}, "More, or not measured"),
      suggestion.quantities ? null : field("Further values measured here", further, "repeats, separated by spaces"),
      el("div", { class: "fields" }, view.learns_cost ? null : costField, suggestion.outcome || suggestion.quantities ? null : field("±", noise, "standard deviation")),
      notMeasured(study, suggestion, attemptCost, message, alert)));
  item.append(form);
  item.hasValue = () => !form.hidden && measured.inputs.some((input) => input.value.trim() !== "");
  item.save = () => runWithButton(save, alert, submit);
  return item;
}

// A button that saves the values of all cards in which one was entered, in their order.
function saveTogether(list, message) {
  const button = el("button", { type: "button", class: "main", onclick: async () => {
    button.disabled = true;
    let saved = 0;
    for (const item of [...list.children].filter((each) => each.hasValue?.())) {
      if (!(await item.save())) break; // its alert says why; those after it stay as they are
      saved += 1;
    }
    button.disabled = false;
    if (saved > 1) message.textContent = `${countNoun(saved, "value")} saved.`;
  } }, "Save all entered values");
  return { node: button, redraw() { button.hidden = list.children.length < 2; } };
}

// The places that are not suggested, each with a button to allow it again.
function exclusionList({ act, current, writable }, message) {
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
export function confirmation(...inputs) {
  const node = el("p", { class: "warning", role: "alert", hidden: true });
  let asked = null;
  function reset() {
    node.hidden = true;
    asked = null;
  }
  inputs.forEach((input) => input.addEventListener("input", reset));
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

// -- another point -----------------------------------------------------------------------------------------------------

// Inputs for level, task and vehicle of a point, where a study has them; read() adds them to a body.
export function pointOptions(view) {
  const level = view.levels && el("select", {}, view.levels.map((l, k) => el("option", { value: k }, `${k}: ± ${l.variance === null ? "by place" : number(Math.sqrt(l.variance), 3)}, cost ${number(l.cost)}`)));
  const task = view.tasks && el("select", {}, view.tasks.map((name) => el("option", { value: name }, name)));
  const vehicle = vehicleChoice(view, "none of them");
  const fields = [level ? field("Noise level", level) : null, task ? field("Task", task) : null, vehicle ? field("Measured by", vehicle) : null];
  const read = () => ({
    ...(level ? { level: Number(level.value) } : {}), ...(task ? { task: task.value } : {}), ...(vehicle?.value ? { who: vehicle.value } : {}),
  });
  return { fields, read };
}

// The form for the value of a point that was not suggested.
function otherPointForm({ check, current, tell }, message) {
  const alert = el("p", { class: "alert", role: "alert" });
  const view = current();
  const coordinates = view.columns.map(coordinateInput);
  const label = view.labels ? labelInput(current, (k) => fill(k)) : null;
  const measured = measuredInputs(view.quantities, view.quantity_label ?? undefined);
  const further = el("input", { type: "text", inputmode: "decimal", autocomplete: "off" });
  const options = pointOptions(view);
  const cost = numberInput();
  const save = el("button", { type: "submit" }, "Save");
  const question = confirmation(...measured.inputs);
  let key = newKey();
  async function submit() {
    const point = Object.fromEntries(view.columns.map((column, k) => [column.name, readCoordinate(coordinates[k], column)]));
    const y = measured.read();
    const repeats = readNumbers(further, "The further values");
    const body = { point, y, ...options.read() };
    if (!(await question.isConfirmed(body, check))) return;
    const named = label?.matches(point) ?? null;
    const what = `${[y, ...repeats].map(measuredText).join(", ")} at ${named ?? formatPoint(point, view.columns)}`;
    let answer;
    if (repeats.length) {
      if (cost.value.trim()) throw new Error("Repeated values count with the expected cost; leave it out.");
      answer = await tell("tell-repeats", { point, values: [y, ...repeats], ...options.read(), key }, what);
    } else {
      if (cost.value.trim()) body.cost = readNumber(cost, "The cost");
      answer = await tell("tell", { ...body, key }, what);
    }
    key = newKey();
    question.reset();
    message.textContent = answer ? `Saved: ${what}.` : `Kept in this browser: ${what}. It is sent when the server can be reached.`;
    measured.inputs.forEach((input) => { input.value = ""; });
    further.value = "";
  }
  const node = el("details", { class: "other-point" }, el("summary", {}, "Enter the value of another point"),
    el("form", { onsubmit: (event) => { event.preventDefault(); runWithButton(save, alert, submit); } },
      el("p", { class: "note" }, label ? "Type the name or the coordinates, or choose a point on the map." : "Type the coordinates, or choose a point on the map."), label?.node ?? null,
      el("div", { class: "fields" }, view.columns.map((column, k) => field(column.label, coordinates[k])), measured.fields,
        options.fields, field("Actual cost", cost)),
      view.quantities.length ? null : field("Further values measured there", further, "repeats, separated by spaces"), question.node, alert, save));

  function show(point) {
    view.columns.forEach((column, k) => { coordinates[k].value = inputText(column, point[column.name]); });
  }
  function fill(k) {
    const latest = current();
    show(Object.fromEntries(latest.columns.map((column, d) => [column.name, valueAt(column, latest.coordinates[d][k])])));
  }
  function pick(point, name = null) {
    node.open = true;
    show(point);
    label?.set(name, point);
    measured.inputs[0].focus({ preventScroll: !matchMedia("(pointer: fine)").matches });
    announce(`Chosen: ${formatPlace({ point, label: name, index: null }, view.columns)}`);
  }
  return { node, pick };
}

// An input for the name of a row, with the names of the table as suggestions; `onChosen(k)` gets the position of the row.
function labelInput(current, onChosen) {
  const id = `labels-${newKey()}`;
  let chosen = null; // {name, text}: the name and its coordinates as they were filled in
  const list = el("datalist", { id }, current().labels.map((name) => el("option", { value: name })));
  const input = el("input", { type: "text", autocomplete: "off", list: id, oninput: () => {
    const view = current();
    const k = withLabel(view, input.value);
    // The coordinates below may still be those of another place, so that nothing is saved under a name that is not known.
    const isUnknown = k < 0 && input.value.trim() !== "";
    input.setCustomValidity(isUnknown ? `No place is named “${input.value.trim()}”. Choose one of the list, or leave the name out.` : "");
    if (k < 0) return;
    onChosen(k);
    chosen = { name: view.labels[k], text: formatPoint(pointOf(view, k), view.columns) };
  } });
  return {
    node: el("div", {}, field("Place", input, "its name in the table"), list),
    set(name, point) {
      input.value = name ?? "";
      input.setCustomValidity("");
      chosen = name === null ? null : { name, text: formatPoint(point, current().columns) };
    },
    // The name, if the coordinates are still those of it.
    matches: (point) => (chosen && chosen.text === formatPoint(point, current().columns) ? chosen.name : null),
  };
}

const pointOf = (view, k) => Object.fromEntries(view.columns.map((column, d) => [column.name, valueAt(column, view.coordinates[d][k])]));
