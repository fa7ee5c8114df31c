// A new study: a problem in TOML, with its tables.

import { post } from "./api.js";
import { busy, el, field, replace, say } from "./dom.js";
import { number, plural } from "./format.js";

const EXAMPLES = {
  grid: ["A map over a grid", `# Where does it exceed 7? A section of a lake, measured from a boat.
[domain]
grid = {distance_m = [0, 1478, 50], depth_m = [-18, 0, 40]}   # from, to, number of points

[goal]
level_set = 7.0              # or maximize = true, minimize = true, fraction_of_max = 0.8

[model]                      # leave out what is not known: it is learned from the values
kernel = "matern52"
lengthscales = [245, 2.7]
variance = 4.5
mean = 2.4

[noise]
variance = 0.14              # of one measurement

[cost]
base = 4.0
travel = {distance_m = 0.25} # for each metre from the last place
magnitude = {depth_m = 4.0}  # for each metre of depth
`],
  table: ["Candidates in a table", `# Which candidate is best? The rows of a CSV file, chosen below, are what can be measured.
[domain]
table = "candidates.csv"
columns = ["temperature_C", "pressure_bar", "catalyst"]

[goal]
maximize = true

[noise]
variance = 0.01
`],
  box: ["A continuous range", `# Which setting is best? Anything between the ends may be chosen.
[domain]
box = {x = [0, 1], y = [0, 1]}

[goal]
minimize = true
`],
};

export function create(main, server) {
  const tables = new Map();
  const name = el("input", { type: "text", maxlength: 100, placeholder: "lake", required: true, autocomplete: "off" });
  const toml = el("textarea", { class: "code", spellcheck: "false", required: true, value: EXAMPLES.grid[1] });
  const alert = el("p", { class: "alert", role: "alert" });
  const listed = el("ul", { class: "tables" });
  const button = el("button", { class: "main", type: "submit" }, "Create the study");

  const from = el("select", { onchange: () => { toml.value = EXAMPLES[from.value][1]; } },
    Object.entries(EXAMPLES).map(([value, [label]]) => el("option", { value }, label)));
  const problem = el("input", { type: "file", accept: ".toml", onchange: async () => {
    if (!problem.files.length) return;
    toml.value = await problem.files[0].text();
    name.value ||= toml.value.match(/^name\s*=\s*"([^"]*)"/m)?.[1] ?? problem.files[0].name.replace(/\.toml$/, "");
  } });
  const csv = el("input", { type: "file", accept: ".csv,text/csv", multiple: true, onchange: async () => {
    for (const file of csv.files) tables.set(file.name, await file.text());
    replace(listed, [...tables].map(([file, text]) => el("li", {}, `${file}: ${plural(text.trim().split("\n").length - 1, "row")}`)));
    csv.value = "";
  } });

  const form = el("form", { class: "create", onsubmit: (event) => {
    event.preventDefault();
    busy(button, alert, async () => {
      const made = await post("/studies", { name: name.value.trim(), problem: toml.value, tables: Object.fromEntries(tables) });
      say(`Study ${made.name} created`);
      location.hash = `#/study/${encodeURIComponent(made.name)}`;
    });
  } },
  el("div", { class: "card" }, el("h1", {}, "New study"),
    el("div", { class: "fields" }, field("Name", name), field("Start from", from)),
    field("Problem", toml, "in TOML"), alert, el("p", { class: "row" }, button, el("a", { href: "#/" }, "Cancel"))),
  el("div", { class: "card" }, el("h2", {}, "Files"),
    field("A problem file", problem, ".toml, instead of typing"),
    field("Tables", csv, ".csv, named as the problem names them"), listed,
    el("h2", {}, "What can stand in it"),
    el("dl", {}, [
      ["[domain]", "grid, box, or table with columns: everything that can be measured"],
      ["[goal]", "level_set, fraction_of_max, maximize or minimize"],
      ["[model]", "kernel, lengthscales, variance, mean; what is left out is learned"],
      ["[noise]", "variance, column, or levels = [{variance = 1e-3, cost = 10}, …] to choose from"],
      ["[cost]", "base or column, travel, magnitude"],
      ["[policy]", 'name = "truvar" or another rule'],
    ].map(([term, text]) => [el("dt", {}, el("code", {}, term)), el("dd", {}, text)])),
    el("p", { class: "note" }, `At most ${number(server.limits.points)} points here; larger ones with truvar new, on the server.`)));
  replace(main, form);
  name.focus();
  return () => {};
}
