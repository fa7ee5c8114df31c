// The parts of the form for a new study: what can be measured (a table or ranges), goal, costs, precision and limits.
// Every part has `node`, and `read()` returns keys of a problem file; it throws with a sentence if something is missing.

import { post } from "./api.js";
import { el, field, numberInput, replace } from "./dom.js";
import { countNoun, number, parseNumber } from "./format.js";

const ROLES = [["coordinate", "coordinate"], ["context", "given, not chosen"], ["label", "name of the row"], ["cost", "cost"], ["sd", "± (standard deviation)"], ["noise", "noise variance"], ["unused", "not used"]];
const COST_NAMES = /cost|price|duration|effort/i;
const SD_NAMES = /(^|_)(sd|std|stdev|sigma|uncertainty|error)(_|$)/i;
const NOISE_NAMES = /noise|variance/i;
const MOSTLY_EMPTY = 0.5; // share of missing cells above which a column is not used
const LONGITUDES = new Set(["lon", "long", "lng", "longitude"]);
const LATITUDES = new Set(["lat", "latitude"]);
const SPEED_UNITS = { "km/h": 1, kn: 1.852 }; // kilometres in an hour, which is then the unit of costs
const DATE = /^\d{4}-\d\d-\d\d|^\d\d?[./]\d\d?[./]\d{4}/; // of an earlier visit, and no place
const FEW_CHOICES = 20; // different texts up to which a column of texts is a coordinate

function optionalNumber(input, label) {
  if (!input.value.trim()) return undefined;
  const value = parseNumber(input.value);
  input.setAttribute("aria-invalid", String(!Number.isFinite(value)));
  if (!Number.isFinite(value)) throw new Error(`${label} must be a number, got “${input.value}”.`);
  return value;
}

function optionalCount(input, label) {
  const value = optionalNumber(input, label);
  if (value !== undefined && !(Number.isInteger(value) && value >= 1)) throw new Error(`${label} must be a whole number of at least 1, got “${input.value}”.`);
  return value === 1 ? false : value;
}

function neededNumber(input, label) {
  const value = optionalNumber(input, label);
  if (value === undefined) throw new Error(`${label} is missing.`);
  return value;
}

const numbers = (input, label) => input.value.split(/[\s;]+/).filter(Boolean).map((text) => {
  const value = parseNumber(text);
  if (!Number.isFinite(value)) throw new Error(`${label} must be numbers separated by spaces, got “${text}”.`);
  return value;
});

// -- a table of candidates ---------------------------------------------------------------------------------------------

export function tablePart(changed) {
  let file = null; // {name, text, columns}
  const alert = el("p", { class: "alert", role: "alert" });
  const list = el("div", {});
  const input = el("input", { type: "file", accept: ".csv,.tsv,.txt,text/csv", onchange: () => { if (input.files.length) take(input.files[0]); } });
  const drop = el("select", { onchange: changed }, [["refuse", "are mistakes"], ["drop", "are left out"]].map(([value, text]) => el("option", { value }, text)));
  const zone = el("div", { class: "drop" }, field("Table", input, "a CSV file with a line per candidate; choose it or drop it here"));
  const stop = (event) => event.preventDefault();
  zone.addEventListener("dragover", (event) => { stop(event); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    stop(event);
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });

  async function take(chosen) {
    alert.textContent = "";
    try {
      const text = await chosen.text();
      const { columns, rows } = await post("/problems/columns", { text });
      file = { name: chosen.name, text, columns: columns.map((column) => ({ ...column, role: roleChoice(column, rows, changed) })) };
      replace(list, el("p", { class: "note" }, `${chosen.name}: ${countNoun(rows, "row")}. What is each column?`),
        el("div", { class: "columns" }, file.columns.map((column) => field(column.name, column.role, describeColumn(column)))),
        field("Rows that lack a coordinate or repeat a point", drop));
    } catch (error) {
      file = null;
      replace(list);
      alert.textContent = error.message;
    }
    changed();
  }

  function read() {
    if (!file) throw new Error("Choose a table first.");
    const named = (role) => file.columns.filter((column) => column.role.value === role).map((column) => column.name);
    const context = named("context");
    const columns = file.columns.filter((column) => ["coordinate", "context"].includes(column.role.value)).map((column) => column.name);
    if (!columns.length) throw new Error("Choose at least one column as coordinate.");
    const dropped = drop.value === "drop" ? { missing: "drop", duplicates: "drop" } : {};
    return {
      domain: { table: file.name, columns, label: named("label")[0], context: context.length ? context : undefined, ...dropped },
      cost: named("cost").length ? { column: named("cost")[0] } : {},
      noise: readNoise(named),
      columns: file.columns.filter((column) => columns.includes(column.name)),
    };
  }
  function readNoise(named) {
    const [sd] = named("sd");
    const [variance] = named("noise");
    if (sd && variance) throw new Error("Choose one column for the noise: standard deviations or variances.");
    if (sd) return { sd };
    return variance ? { column: variance } : {};
  }
  return { node: el("div", {}, zone, alert, list), read, tables: () => (file ? { [file.name]: file.text } : {}), suggestedName: () => file?.name.replace(/\.[^.]*$/, "") };
}

function roleChoice(column, rows, changed) {
  let role = "coordinate";
  if (column.missing > MOSTLY_EMPTY * rows) role = "unused";
  else if (column.kind === "text" && column.distinct === rows && rows > FEW_CHOICES) role = "label";
  else if (column.kind === "text" && (column.distinct > FEW_CHOICES || column.examples.every((text) => DATE.test(text)))) role = "unused";
  else if (column.kind === "number" && COST_NAMES.test(column.name)) role = "cost";
  else if (column.kind === "number" && SD_NAMES.test(column.name)) role = "sd";
  else if (column.kind === "number" && NOISE_NAMES.test(column.name)) role = "noise";
  else if (/^(value|target|result)$/i.test(column.name)) role = "unused";
  const node = el("select", { onchange: changed }, ROLES.map(([value, text]) => el("option", { value }, text)));
  node.value = role;
  return node;
}

function describeColumn(column) {
  const missing = column.missing ? `, ${column.missing} missing` : "";
  if (column.kind === "number") return `${number(column.low)} to ${number(column.high)}${missing}`;
  return `${column.examples.slice(0, 3).join(", ")}${column.distinct > 3 ? ", …" : ""}${missing}`;
}

// -- ranges of settings ------------------------------------------------------------------------------------------------

const TYPES = [["range", "numbers from, to"], ["log", "numbers on a log scale"], ["integer", "whole numbers"], ["choices", "one of some names"]];

export function rangesPart(changed) {
  const rows = [];
  const list = el("div", { class: "ranges" });
  const points = el("select", { onchange: changed }, [["grid", "points of a grid"], ["box", "any value in the ranges"]].map(([value, text]) => el("option", { value }, text)));
  const add = el("button", { type: "button", onclick: () => { addRow(); changed(); } }, "Add a column");

  function addRow(values = {}) {
    const name = el("input", { type: "text", autocomplete: "off", value: values.name ?? "", oninput: changed });
    const type = el("select", { onchange: () => { showInputs(); changed(); } }, TYPES.map(([value, text]) => el("option", { value }, text)));
    const low = numberInput({ value: values.low ?? "", oninput: changed });
    const high = numberInput({ value: values.high ?? "", oninput: changed });
    const steps = numberInput({ value: values.steps ?? "20", oninput: changed });
    const choices = el("input", { type: "text", autocomplete: "off", oninput: changed });
    const inputs = el("div", { class: "fields" });
    const row = { name, type, low, high, steps, choices };
    const remove = el("button", { type: "button", class: "quiet danger", "aria-label": "Remove this column", onclick: () => {
      rows.splice(rows.indexOf(row), 1);
      node.remove();
      changed();
    } }, "Remove");
    const node = el("fieldset", { class: "range" }, el("legend", { class: "visually-hidden" }, "Column"),
      el("div", { class: "fields" }, field("Column", name), field("Values", type)), inputs, remove);
    const labelled = { low: field("From", low), high: field("To", high), steps: field("Number of points", steps), choices: field("Names", choices, "separated by commas") };
    function showInputs() {
      const isGrid = points.value === "grid";
      if (type.value === "choices") replace(inputs, labelled.choices);
      else replace(inputs, labelled.low, labelled.high, isGrid && type.value !== "integer" ? labelled.steps : null);
    }
    row.showInputs = showInputs;
    rows.push(row);
    showInputs();
    list.append(node);
  }
  points.addEventListener("change", () => rows.forEach((row) => row.showInputs()));
  addRow({ name: "x", low: "0", high: "1" });
  addRow({ name: "y", low: "0", high: "1" });

  function readRow(row) {
    const name = row.name.value.trim();
    if (!name) throw new Error("Every column needs a name.");
    if (row.type.value === "choices") {
      const choices = row.choices.value.split(",").map((text) => text.trim()).filter(Boolean);
      if (choices.length < 2) throw new Error(`${name} needs at least two names, separated by commas.`);
      return [name, choices, { name }];
    }
    const low = neededNumber(row.low, `${name}, from,`);
    const high = neededNumber(row.high, `${name}, to,`);
    const isGrid = points.value === "grid";
    const steps = isGrid && row.type.value !== "integer" ? neededNumber(row.steps, `${name}, number of points,`) : undefined;
    const column = { name, low, high };
    if (row.type.value === "integer") return [name, { integer: [low, high] }, column];
    if (row.type.value === "log") return [name, isGrid ? { log: [low, high], count: steps } : { log: [low, high] }, column];
    return [name, isGrid ? [low, high, steps] : [low, high], column];
  }

  function read() {
    const parsed = rows.map(readRow);
    if (!parsed.length) throw new Error("Add at least one column.");
    return { domain: { [points.value]: Object.fromEntries(parsed.map(([name, spec]) => [name, spec])) }, cost: {}, noise: {}, columns: parsed.map(([, , column]) => column) };
  }
  return { node: el("div", {}, field("Can be measured", points), list, el("p", {}, add)), read, tables: () => ({}), suggestedName: () => undefined };
}

// -- goal, costs, precision and limits ---------------------------------------------------------------------------------

const GOALS = [["maximize", "the highest value"], ["minimize", "the lowest value"], ["level_set", "all points above a threshold"], ["level_set_below", "all points below a threshold"],
  ["between", "all points between two thresholds"], ["bands", "the band of every point, between several thresholds"], ["fraction_of_max", "all points above a share of the maximum"],
  ["within", "all points within a margin of the highest"], ["within_of_min", "all points within a margin of the lowest"], ["map", "a map: the value everywhere"]];

export function goalPart(changed) {
  const goal = el("select", { onchange: () => { show(); changed(); } }, GOALS.map(([value, text]) => el("option", { value }, text)));
  const threshold = numberInput({ oninput: changed });
  const several = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", oninput: changed });
  const share = numberInput({ value: "0.8", oninput: changed });
  const margin = numberInput({ oninput: changed });
  const accuracy = numberInput({ oninput: changed });
  const score = numberInput({ oninput: changed });
  const scoreLabel = el("span", {});
  const scoreField = el("div", {}, el("label", { for: "goal-score" }, scoreLabel), score);
  score.id = "goal-score";
  const inputs = el("div", { class: "fields" });
  // The limit that suits the goal: its key of [run], and how it is asked for. A map stops at its own accuracy.
  const limit = () => {
    if (goal.value === "map") return null;
    return ["maximize", "minimize"].includes(goal.value) ? ["regret", "Stop at regret", " in units of the value; optional"] : ["f1", "Stop at F1", " such as 0.95; optional"];
  };
  const labelled = { one: field("Threshold", threshold), several: field("Thresholds", several, "ascending, separated by spaces"), share: field("Share of the maximum", share, "between 0 and 1"),
    margin: field("Margin", margin, "in the units of the values"), accuracy: field("Accuracy ±", accuracy, "of the value, at 99 % of the points") };
  function show() {
    const kind = { level_set: "one", level_set_below: "one", between: "several", bands: "several", fraction_of_max: "share", within: "margin", within_of_min: "margin", map: "accuracy" }[goal.value];
    const found = limit();
    replace(inputs, kind ? labelled[kind] : null, found ? scoreField : null);
    if (found) replace(scoreLabel, found[1], el("span", { class: "note" }, found[2]));
  }
  function readGoal() {
    switch (goal.value) {
      case "level_set": case "level_set_below": return { [goal.value]: neededNumber(threshold, "The threshold") };
      case "map": return { map: neededNumber(accuracy, "The accuracy") };
      case "fraction_of_max": return { fraction_of_max: neededNumber(share, "The share of the maximum") };
      case "within": case "within_of_min": return { [goal.value]: neededNumber(margin, "The margin") };
      case "between": case "bands": {
        const thresholds = numbers(several, "The thresholds");
        if (thresholds.length < 2) throw new Error("Give at least two thresholds, separated by spaces.");
        return goal.value === "bands" ? { level_set: thresholds } : { between: thresholds };
      }
      default: return { [goal.value]: true };
    }
  }
  show();
  return {
    node: el("div", {}, field("Find", goal), inputs),
    read: () => {
      const wanted = readGoal();
      const found = limit();
      return { goal: wanted, run: found ? { [found[0]]: optionalNumber(score, "The limit of the score") } : { accuracy: wanted.map } };
    },
  };
}

const OUTCOMES = [["", "a number"], ["binary", "yes or no"], ["count", "a number of events"]];

// What a measurement gives; thresholds are then probabilities of a yes, or rates.
export function outcomePart(changed) {
  const kind = el("select", { onchange: () => { show(); changed(); } }, OUTCOMES.map(([value, text]) => el("option", { value }, text)));
  const guess = numberInput({ oninput: changed });
  const lapse = numberInput({ oninput: changed });
  const exposure = numberInput({ oninput: changed });
  const inputs = el("div", { class: "fields" });
  const labelled = {
    binary: [field("Guess", guess, "probability of a yes where nothing is detected; optional"), field("Lapse", lapse, "probability of a no where everything is detected; optional")],
    count: [field("Exposure", exposure, "time, area or volume of a measurement; default 1")],
  };
  const show = () => replace(inputs, ...(labelled[kind.value] ?? []));
  function read() {
    if (!kind.value) return undefined;
    const options = kind.value === "binary"
      ? { guess: optionalNumber(guess, "The guess"), lapse: optionalNumber(lapse, "The lapse") }
      : { exposure: optionalNumber(exposure, "The exposure") };
    return { kind: kind.value, ...options };
  }
  return { node: el("div", {}, field("A measurement gives", kind), inputs), read };
}

// The columns whose names say that they are longitude and latitude in degrees; null if there are none.
function degreeColumns(columns) {
  const the = (words) => {
    const found = columns.filter(({ name }) => (name.match(/[A-Za-z]+/g) ?? []).some((word) => words.has(word.toLowerCase())));
    return found.length === 1 ? found[0] : null;
  };
  const [longitude, latitude] = [the(LONGITUDES), the(LATITUDES)];
  if (!longitude || !latitude) return null;
  return longitude.low >= -180 && longitude.high <= 360 && latitude.low >= -90 && latitude.high <= 90 ? { longitude, latitude } : null;
}

// Travel over the Earth: cost of a kilometre or speed, harbour and return leg.
function voyagePart(changed) {
  const rate = numberInput({ oninput: changed });
  const unit = el("select", { onchange: changed }, [["cost", "cost of a kilometre"], ["km/h", "km/h, costs in hours"], ["kn", "knots, costs in hours"]].map(([value, text]) => el("option", { value }, text)));
  const longitude = numberInput({ oninput: changed });
  const latitude = numberInput({ oninput: changed });
  const back = el("select", { onchange: changed }, [["", "need not fit into the budget"], ["return", "must fit into the budget"]].map(([value, text]) => el("option", { value }, text)));
  const node = el("div", {}, el("div", { class: "fields" }, field("Speed or cost", rate, "optional; empty: moving is free"), field("In", unit)),
    el("div", { class: "fields" }, field("Harbour, longitude", longitude, "where the boat starts; optional"), field("Harbour, latitude", latitude)), field("The return leg", back));
  function read(columns) {
    const given = optionalNumber(rate, "The speed or cost");
    if (given === undefined) return {};
    if (!(given > 0)) throw new Error("The speed or cost must be above 0.");
    const perKilometre = unit.value === "cost" ? given : Number((1 / (given * SPEED_UNITS[unit.value])).toPrecision(6));
    const harbour = [optionalNumber(longitude, "The longitude of the harbour"), optionalNumber(latitude, "The latitude of the harbour")];
    if ((harbour[0] === undefined) !== (harbour[1] === undefined)) throw new Error("Give longitude and latitude of the harbour, or neither.");
    if (back.value && harbour[0] === undefined) throw new Error("A return leg needs a harbour: give its longitude and latitude.");
    return {
      great_circle: { longitude: columns.longitude.name, latitude: columns.latitude.name, rate: perKilometre },
      start: harbour[0] === undefined ? undefined : { [columns.longitude.name]: harbour[0], [columns.latitude.name]: harbour[1] },
      must_return: back.value ? true : undefined,
    };
  }
  return { node, read };
}

export function costPart(changed) {
  const base = numberInput({ oninput: changed });
  const learned = el("select", { onchange: changed }, [["", "is known"], ["learned", "is only known afterwards"]].map(([value, text]) => el("option", { value }, text)));
  const sd = numberInput({ oninput: changed });
  const budget = numberInput({ oninput: changed });
  const steps = numberInput({ oninput: changed });
  const repeats = numberInput({ oninput: changed });
  const travel = el("div", { class: "fields" });
  const rates = new Map(); // column: input
  const voyage = voyagePart(changed);
  const byColumn = el("div", {}, el("p", { class: "note" }, "For each unit of a column from one measurement to the next."), travel);
  const details = el("details", {}, el("summary", {}, "Cost of travel"), voyage.node, byColumn);
  const node = el("div", {}, el("div", { class: "fields" }, field("Cost of a measurement", base, "default 1"), field("The cost", learned)), el("div", { class: "fields" }, field("Budget", budget, "total cost; optional"),
    field("Most measurements", steps, "optional"), field("Of one place", repeats, "at most this many measurements; 1 if it cannot be repeated, optional"),
    field("Noise of a measurement", sd, "its ±; learned if empty")), details);
  // The columns that travel can be paid along: those with numbers.
  function setColumns(columns) {
    const named = columns.filter((column) => column.low !== undefined && column.low !== null);
    for (const { name } of named) if (!rates.has(name)) rates.set(name, numberInput({ oninput: changed }));
    replace(travel, named.map(({ name }) => field(name, rates.get(name))));
    details.hidden = named.length === 0;
    const isGeographic = degreeColumns(columns) !== null;
    if (isGeographic && voyage.node.hidden) details.open = true;
    voyage.node.hidden = !isGeographic;
    byColumn.hidden = isGeographic;
  }
  voyage.node.hidden = true;
  function read(columns) {
    const degrees = degreeColumns(columns);
    const overEarth = degrees ? voyage.read(degrees) : {};
    const travelRates = degrees ? [] : columns.flatMap(({ name }) => {
      const rate = rates.has(name) ? optionalNumber(rates.get(name), `The cost of travel along ${name}`) : undefined;
      return rate === undefined ? [] : [[name, rate]];
    });
    const deviation = optionalNumber(sd, "The noise");
    const given = optionalNumber(base, "The cost of a measurement");
    const isMoving = travelRates.length > 0 || overEarth.great_circle !== undefined;
    const pointwise = learned.value ? { learned: true, prior: given } : { base: given ?? (isMoving ? 1 : undefined) };
    return {
      cost: { ...pointwise, travel: travelRates.length ? Object.fromEntries(travelRates) : undefined, ...overEarth },
      noise: { sd: deviation },
      repeats: optionalCount(repeats, "The number of measurements of a place"),
      run: { budget: optionalNumber(budget, "The budget"), steps: optionalNumber(steps, "The number of measurements") },
    };
  }
  return { node, read, setColumns };
}
