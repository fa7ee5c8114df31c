// The form for a new study: a problem in TOML, with its tables.

import { post } from "./api.js";
import { announce, el, field, replace, runWithButton } from "./dom.js";
import { countNoun, number } from "./format.js";

const LONGEST_NAME = 100; // characters

const EXAMPLES = {
  grid: ["A map over a grid", `# Where does it exceed 7? A vertical section of a lake, measured from a boat.
[domain]
grid = {distance_m = [0, 1478, 50], depth_m = [-18, 0, 40]}   # from, to, number of points

[goal]
level_set = 7.0              # or maximize = true, minimize = true, fraction_of_max = 0.8

[model]                      # leave out what is not known: it is learned from the measurements
kernel = "matern52"
lengthscales = [245, 2.7]
variance = 4.5
mean = 2.4

[noise]
variance = 0.14              # of one measurement

[cost]
base = 4.0
travel = {distance_m = 0.25} # for each metre from the last position
magnitude = {depth_m = 4.0}  # for each metre of depth
`],
  table: ["Candidates in a table", `# Which candidate is best? The rows of a CSV file (choose it under "Files") are what can be measured.
[domain]
table = "candidates.csv"
columns = ["temperature_C", "pressure_bar", "catalyst"]

[goal]
maximize = true

[noise]
variance = 0.01
`],
  mixed: ["Settings of several types", `# Which configuration is best? Log scales, whole numbers and names.
[domain]
box = {lr = {log = [1e-6, 1e-1]}, depth = {integer = [1, 12]}, solver = ["lbfgs", "saga"], shrinking = {boolean = true}}

[goal]
maximize = true
`],
  box: ["A continuous range", `# Which setting is best? Any value between the two ends can be chosen.
[domain]
box = {x = [0, 1], y = [0, 1]}

[goal]
minimize = true
`],
};

export function showCreateStudy(main, server) {
  const tables = new Map(); // file name: text
  const name = el("input", { type: "text", maxlength: LONGEST_NAME, placeholder: "lake", required: true, autocomplete: "off" });
  const toml = el("textarea", { class: "code", spellcheck: "false", required: true, value: EXAMPLES.grid[1] });
  const alert = el("p", { class: "alert", role: "alert" });
  const tableList = el("ul", { class: "tables" });
  const button = el("button", { class: "main", type: "submit" }, "Create the study");

  const example = el("select", { onchange: () => { toml.value = EXAMPLES[example.value][1]; } },
    Object.entries(EXAMPLES).map(([value, [label]]) => el("option", { value }, label)));
  const problemFile = el("input", { type: "file", accept: ".toml", onchange: async () => {
    if (!problemFile.files.length) return;
    toml.value = await problemFile.files[0].text();
    const nameInFile = toml.value.match(/^name\s*=\s*"([^"]*)"/m)?.[1];
    name.value ||= nameInFile ?? problemFile.files[0].name.replace(/\.toml$/, "");
  } });
  const tableFiles = el("input", { type: "file", accept: ".csv,text/csv", multiple: true, onchange: async () => {
    for (const file of tableFiles.files) tables.set(file.name, await file.text());
    replace(tableList, [...tables].map(([file, text]) => el("li", {}, `${file}: ${countNoun(text.trim().split("\n").length - 1, "row")}`)));
    tableFiles.value = "";
  } });

  const form = el("form", { class: "create", onsubmit: (event) => {
    event.preventDefault();
    runWithButton(button, alert, async () => {
      const created = await post("/studies", { name: name.value.trim(), problem: toml.value, tables: Object.fromEntries(tables) });
      announce(`Study ${created.name} created`);
      location.hash = `#/study/${encodeURIComponent(created.name)}`;
    });
  } },
  el("div", { class: "card" }, el("h1", {}, "New study"),
    el("div", { class: "fields" }, field("Name", name), field("Start from", example)),
    field("Problem", toml, "in TOML"), alert, el("p", { class: "row" }, button, el("a", { href: "#/" }, "Cancel"))),
  el("div", { class: "card" }, el("h2", {}, "Files"),
    field("Problem file", problemFile, ".toml, replaces the text"),
    field("Tables", tableFiles, ".csv, with the file names used in the problem"), tableList,
    el("h2", {}, "Problem file keys"),
    el("dl", {}, [
      ["[domain]", "grid, box, or table with columns: all points that can be measured"],
      ["[goal]", "level_set, fraction_of_max, maximize or minimize"],
      ["[model]", "kernel, lengthscales, variance, mean; what is left out is learned"],
      ["[noise]", "variance, column, or levels = [{variance = 1e-3, cost = 10}, …] to choose from"],
      ["[cost]", "base or column, travel, magnitude"],
      ["[policy]", 'name; "auto" by default, "truvar" is the algorithm of the paper'],
    ].map(([key, text]) => [el("dt", {}, el("code", {}, key)), el("dd", {}, text)])),
    el("p", { class: "note" }, `At most ${number(server.limits.points)} points on this page; for larger problems use truvar new on the server.`)));
  replace(main, form);
  name.focus();
  return () => {};
}
