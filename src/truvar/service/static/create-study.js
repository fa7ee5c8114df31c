// The form for a new study: a table or ranges, goal, costs and limits, or a problem in TOML; with a preview.

import { post } from "./api.js";
import { announce, el, field, radioButtons, replace, runWithButton } from "./dom.js";
import { countNoun, number, tickText } from "./format.js";
import { axes, plotArea } from "./plot-area.js";
import { costPart, goalPart, outcomePart, rangesPart, tablePart } from "./problem-form.js";
import { scale } from "./scale.js";
import { toToml } from "./toml.js";

const LONGEST_NAME = 100; // characters
const LONGEST_QUANTITY = 60; // characters
const CHECK_DELAY = 500; // milliseconds without a change after which the problem is checked
const SOURCES = [["table", "A table"], ["ranges", "Ranges"], ["toml", "Advanced: TOML"]];
const EXAMPLE = `# Where does it exceed 7? A vertical section of a lake, measured from a boat.
[domain]
grid = {distance_m = [0, 1478, 50], depth_m = [-18, 0, 40]}   # from, to, number of points

[goal]
level_set = 7.0              # or level_set_below = 4.0, maximize = true, minimize = true, fraction_of_max = 0.8, within = 0.02

[cost]
base = 4.0
travel = {distance_m = 0.25} # for each metre from the last position
magnitude = {depth_m = 4.0}  # for each metre of depth
`;

export function showCreateStudy(main, server) {
  let source = "table";
  let timer;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(check, CHECK_DELAY);
  };
  const name = el("input", { type: "text", maxlength: LONGEST_NAME, placeholder: "lake", required: true, autocomplete: "off" });
  const parts = { table: tablePart(later), ranges: rangesPart(later) };
  const goal = goalPart(later);
  const quantity = el("input", { type: "text", maxlength: LONGEST_QUANTITY, placeholder: "oxygen", autocomplete: "off", oninput: later });
  const unit = el("input", { type: "text", maxlength: LONGEST_QUANTITY, placeholder: "mg/l", autocomplete: "off", oninput: later });
  const measured = el("div", { class: "fields" }, field("Quantity", quantity, "what is measured; optional"), field("Unit", unit, "optional"));
  const outcome = outcomePart(later);
  const cost = costPart(later);
  const advanced = tomlPart(later, (suggested) => { name.value ||= suggested; });
  const alert = el("p", { class: "alert", role: "alert" });
  const button = el("button", { class: "main", type: "submit" }, "Create the study");
  const preview = previewPanel();
  const described = el("div", { class: "parts" });
  const choice = radioButtons("Described by", SOURCES, source, (chosen) => {
    if (chosen === "toml") advanced.offer(tryText());
    source = chosen;
    show();
    later();
  });

  // The problem as {problem, tables}; throws with a sentence if something is missing.
  function read() {
    if (source === "toml") return { problem: advanced.text(), tables: advanced.tables() };
    const part = parts[source];
    const found = part.read();
    cost.setColumns(found.columns);
    const wanted = goal.read();
    const more = cost.read(found.columns);
    const problem = toToml({
      domain: found.domain, goal: wanted.goal, outcome: outcome.read() ?? {}, noise: Object.keys(found.noise).length ? found.noise : more.noise,
      cost: Object.keys(found.cost).length ? { ...more.cost, base: undefined, learned: undefined, prior: undefined, ...found.cost } : more.cost, run: { ...more.run, ...wanted.run },
    }, { repeats: more.repeats, quantity: quantity.value.trim() || undefined, unit: unit.value.trim() || undefined });
    return { problem, tables: part.tables() };
  }

  function tryText() {
    try {
      return read();
    } catch {
      return null; // the form is not complete: the example stays
    }
  }

  async function check() {
    let body;
    try {
      body = read();
    } catch (error) {
      preview.say(error.message);
      return;
    }
    if (source !== "toml") name.value ||= parts[source].suggestedName() ?? "";
    preview.wait();
    try {
      preview.show(await post("/problems/check", body));
    } catch (error) {
      preview.say(error.message, true);
    }
  }

  function show() {
    replace(described, source === "toml" ? advanced.node : [
      el("h2", {}, "What can be measured"), parts[source].node, el("h2", {}, "Goal"), measured, goal.node, el("h2", {}, "Cost, precision and limits"), cost.node]);
  }

  const form = el("form", { class: "create", novalidate: true, onsubmit: (event) => {
    event.preventDefault();
    runWithButton(button, alert, async () => {
      if (!name.value.trim()) {
        name.focus();
        throw new Error("Give the study a name.");
      }
      const created = await post("/studies", { name: name.value.trim(), ...read() });
      announce(`Study ${created.name} created`);
      location.hash = `#/study/${encodeURIComponent(created.name)}`;
    });
  } },
  el("div", { class: "card" }, el("h1", {}, "New study"), field("Name", name), choice, described, alert,
    el("p", { class: "row" }, button, el("a", { class: "button", href: "#/" }, "Cancel"))),
  el("div", { class: "card preview" }, el("h2", {}, "Check"), preview.node,
    el("p", { class: "note" }, `At most ${number(server.limits.points)} points on this page; for larger problems use truvar new on the server.`)));
  show();
  replace(main, form);
  name.focus();
  check();
  return () => clearTimeout(timer);
}

// A problem in TOML with its files.
function tomlPart(changed, suggestName) {
  const tables = new Map(); // file name: text
  const toml = el("textarea", { class: "code", spellcheck: "false", value: EXAMPLE, oninput: changed });
  const list = el("ul", { class: "tables" });
  const showTables = () => replace(list, [...tables].map(([file, text]) => el("li", {}, `${file}: ${countNoun(text.trim().split("\n").length - 1, "row")}`)));
  const problemFile = el("input", { type: "file", accept: ".toml", onchange: async () => {
    if (!problemFile.files.length) return;
    toml.value = await problemFile.files[0].text();
    suggestName(toml.value.match(/^name\s*=\s*"([^"]*)"/m)?.[1] ?? problemFile.files[0].name.replace(/\.toml$/, ""));
    changed();
  } });
  const tableFiles = el("input", { type: "file", accept: ".csv,text/csv", multiple: true, onchange: async () => {
    for (const file of tableFiles.files) tables.set(file.name, await file.text());
    showTables();
    tableFiles.value = "";
    changed();
  } });
  const node = el("div", {}, field("Problem", toml, "in TOML"),
    el("div", { class: "fields" }, field("Problem file", problemFile, ".toml, replaces the text"), field("Tables", tableFiles, ".csv, with the file names used in the problem")), list,
    el("details", {}, el("summary", {}, "Problem file keys"), el("dl", {}, [
      ["[domain]", "grid, box, or table with columns: all points that can be measured"],
      ["[goal]", "level_set, level_set_below, between, fraction_of_max, within, maximize or minimize"],
      ["[model]", "kernel, lengthscales, variance, mean; what is left out is learned"],
      ["[noise]", "sd (the ±), variance, column, or levels = [{variance = 1e-3, cost = 10}, …] to choose from"],
      ["[outcome]", 'kind = "binary" for yes or no, with guess and lapse, or "count", with exposure; left out: a number'],
      ["[cost]", "base, column or learned = true, travel, magnitude"],
      ["[run]", "budget, steps, f1 or regret: where to stop"],
      ["[policy]", 'name; "auto" by default, "truvar" is the algorithm of the paper'],
    ].map(([key, text]) => [el("dt", {}, el("code", {}, key)), el("dd", {}, text)]))));
  return {
    node, text: () => toml.value, tables: () => Object.fromEntries(tables),
    // Takes over a problem that the form described.
    offer(found) {
      if (!found) return;
      toml.value = found.problem;
      for (const [file, text] of Object.entries(found.tables)) tables.set(file, text);
      showTables();
    },
  };
}

// The problem as the server understands it: in words, with warnings, and its points on a map.
function previewPanel() {
  let checked = null;
  const message = el("p", { class: "note", role: "status" });
  const rows = el("dl", { class: "facts" });
  const warnings = el("div", { class: "warnings" });
  const area = plotArea(null, (drawing) => checked && drawPoints(drawing, checked), { role: "img" });
  const node = el("div", {}, message, warnings, area.node, rows);
  area.node.hidden = true;
  function say(text, isError = false) {
    checked = null;
    message.className = isError ? "alert" : "note";
    message.textContent = text;
    replace(rows);
    replace(warnings);
    area.node.hidden = true;
  }
  function show(found) {
    checked = found;
    message.className = "note";
    message.textContent = `${found.goal[0].toUpperCase()}${found.goal.slice(1)} ${countNoun(found.points, "point")}.`;
    replace(rows, found.rows.flatMap(({ name, text }) => [el("dt", {}, name), el("dd", {}, text)]));
    replace(warnings, found.warnings.map((text) => el("p", { class: "warning" }, `${text[0].toUpperCase()}${text.slice(1)}.`)));
    area.node.hidden = false;
    area.node.setAttribute("aria-label", `${countNoun(found.points, "point")} over ${found.columns.map((column) => column.label).join(", ")}`);
    area.redraw();
  }
  const wait = () => checked || say("Checking …"); // what was shown last stays until the answer
  return { node, say, show, wait };
}

// The points over the first two columns, or along the only one.
function drawPoints({ context, overlay, width, height }, { columns, coordinates }) {
  const box = { left: 52, top: 24, right: width - 12, bottom: height - 40 };
  const [xColumn, yColumn = null] = columns;
  const axis = (column, from, to) => {
    const found = scale(column.low, column.high, from, to, column.log);
    found.label = (tick) => tickText(column, tick);
    return found;
  };
  const x = axis(xColumn, box.left + 6, box.right - 6);
  const y = yColumn ? axis(yColumn, box.bottom - 6, box.top + 6) : scale(0, 1, box.bottom, box.top);
  if (!yColumn) y.label = () => "";
  axes(overlay, box, x, y, { x: xColumn.label, y: yColumn ? yColumn.label : "" });
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
  const [xs, ys = null] = coordinates;
  for (let k = 0; k < xs.length; k += 1) context.fillRect(x(xs[k]) - 1.5, (ys ? y(ys[k]) : (box.top + box.bottom) / 2) - 1.5, 3, 3);
}
