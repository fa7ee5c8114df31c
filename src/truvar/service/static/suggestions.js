// What to measure next: ask, enter the values, or tell of another place.

import { busy, el, field, replace, say } from "./dom.js";
import { number, parse, place, plural, spoken, unit } from "./format.js";

export function next(current, writable, act, limits) {
  const alert = el("p", { class: "alert", role: "alert" });
  const told = el("p", { class: "told", role: "status" });
  const many = el("input", { type: "number", class: "narrow", min: 1, max: limits.batch, value: 1, "aria-label": "How many suggestions" });
  const button = el("button", { class: "main", type: "submit" }, "Suggest next");
  const ask = el("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    told.textContent = "";
    busy(button, alert, async () => {
      const { suggestions } = await act("ask", { n: Number(many.value) || 1 });
      const first = list.querySelector(`[data-id="${suggestions[0].id}"]`);
      say(`${plural(suggestions.length, "suggestion")}: ${suggestions.map((s) => place(s.point, current().columns)).join("; ")}`);
      if (matchMedia("(pointer: fine)").matches) first?.querySelector("input")?.focus();
      else first?.scrollIntoView({ block: "nearest" });
    }).finally(redraw);
  } }, button, many);
  const list = el("ol", { class: "suggestions", "aria-label": "Suggestions that wait for a value" });
  const empty = el("p", { class: "note" });
  const other = elsewhere(current, act, told);
  const node = el("div", {}, el("h2", {}, "Next measurement"), writable ? ask : null, alert, told, empty, list, writable ? other.node : null);

  function redraw() {
    const view = current();
    const finished = view.state === "finished";
    button.disabled = finished;
    const known = new Map([...list.children].map((item) => [item.dataset.id, item]));
    replace(list, view.pending.map((s) => known.get(String(s.id)) ?? waiting(s, view, writable, act, told)));
    empty.textContent = view.pending.length ? "" : finished ? `Nothing is left to measure: ${view.result.reason}.`
      : view.result.steps ? "No suggestion is waiting for a value." : "Nothing was measured yet. Ask for the first place, or tell of one that you have measured.";
    other.redraw();
  }
  return { node, redraw, pick: other.pick };
}

// A suggestion and the form for its value. It is made once, so that what is typed stays when others change the study.
function waiting(suggestion, view, writable, act, told) {
  const alert = el("p", { class: "alert", role: "alert" });
  const where = view.columns.map((column) => el("span", {}, el("b", {}, `${spoken(column)} `), `${number(suggestion.point[column.name], 5)}${unit(column)}`));
  const how = [
    `#${suggestion.id}`, `cost ${number(suggestion.cost)}`,
    suggestion.level === null ? null : `noise level ${suggestion.level} (variance ${number(suggestion.noise)})`,
    suggestion.task === null ? null : `measure ${suggestion.task}`,
  ].filter(Boolean).join(" · ");
  const item = el("li", { class: "suggestion", "data-id": suggestion.id }, el("p", { class: "where" }, where), el("p", { class: "note" }, how));
  if (!writable) return item;

  const value = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", required: true });
  const [cost, noise] = [0, 0].map(() => el("input", { type: "text", inputmode: "decimal", autocomplete: "off" }));
  const save = el("button", { class: "main", type: "submit" }, "Save");
  const drop = el("button", { type: "button", class: "quiet danger", onclick: () => busy(drop, alert, async () => {
    await act("withdraw", { id: suggestion.id });
    told.textContent = `Suggestion ${suggestion.id} is withdrawn.`;
  }) }, "It cannot be measured");
  item.append(el("form", { onsubmit: (event) => {
    event.preventDefault();
    busy(save, alert, async () => {
      await act("tell", { id: suggestion.id, ...measured(value, cost, noise) });
      told.textContent = `Saved: ${value.value.trim()} at ${place(suggestion.point, view.columns)}.`;
    });
  } }, field("Measured value", value), save, alert,
  el("details", {}, el("summary", {}, "More"), el("div", { class: "fields" }, field("Cost, if other", cost), field("Noise variance, if known", noise)), drop)));
  return item;
}

function measured(value, cost, noise) {
  const body = { y: checked(value, "The measured value") };
  if (cost.value.trim()) body.cost = checked(cost, "The cost");
  if (noise.value.trim()) body.noise = checked(noise, "The noise variance");
  return body;
}

export function checked(input, what) {
  const found = parse(input.value);
  input.setAttribute("aria-invalid", String(!Number.isFinite(found)));
  if (Number.isFinite(found)) return found;
  input.focus();
  throw new Error(`${what} must be a number, but it was “${input.value}”.`);
}

// A value of a place that was not asked for; the map puts the place in.
function elsewhere(current, act, told) {
  const alert = el("p", { class: "alert", role: "alert" });
  const view = current();
  const inputs = view.columns.map(() => el("input", { type: "text", inputmode: "decimal", autocomplete: "off", required: true }));
  const value = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", required: true });
  const level = view.levels && el("select", {}, view.levels.map((l, k) => el("option", { value: k }, `${k}: variance ${number(l.variance)}, cost ${number(l.cost)}`)));
  const task = view.tasks && el("select", {}, view.tasks.map((name) => el("option", { value: name }, name)));
  const save = el("button", { type: "submit" }, "Save");
  const node = el("details", {}, el("summary", {}, "Another place was measured"),
    el("form", { onsubmit: (event) => {
      event.preventDefault();
      busy(save, alert, async () => {
        const point = Object.fromEntries(view.columns.map((column, k) => [column.name, checked(inputs[k], column.label)]));
        const body = { point, y: checked(value, "The measured value"), key: key(point, value.value) };
        if (level) body.level = Number(level.value);
        if (task) body.task = task.value;
        await act("tell", body);
        told.textContent = `Saved: ${value.value.trim()} at ${place(point, view.columns)}.`;
        sent = null;
        value.value = "";
      });
    } }, el("p", { class: "note" }, "Type the place, or choose it on the map."),
    el("div", { class: "fields" }, view.columns.map((column, k) => field(column.label, inputs[k])), field("Measured value", value),
      level ? field("Noise level", level) : null, task ? field("Task", task) : null), alert, save));

  // The same key goes with every try to send the same value, so that it counts once.
  let sent = null;
  function key(point, y) {
    const what = JSON.stringify([point, y]);
    if (sent?.what !== what) sent = { what, key: Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("") };
    return sent.key;
  }
  return {
    node,
    redraw() {},
    pick(point) {
      node.open = true;
      view.columns.forEach((column, k) => { inputs[k].value = String(Number(point[column.name].toPrecision(10))); });
      value.focus({ preventScroll: !matchMedia("(pointer: fine)").matches });
      say(`Chosen: ${place(point, view.columns)}`);
    },
  };
}
