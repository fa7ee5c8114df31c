// The candidates of a table over two of its columns, longitude and latitude by default; the other columns by sliders.

import { coastlineChoice } from "./coastlines.js";
import { el, field, radioButtons, replace } from "./dom.js";
import { formatValue, position, valueAt } from "./format.js";
import { map } from "./map.js";
import { distinct } from "./scale.js";
import { askedProbability } from "./sides.js";

export const CANDIDATE_LAYERS = [["probability", "Probability"], ["classes", "Classes"], ["mean", "Mean"], ["sd", "Uncertainty"]];
const MOST_LEVELS = 60; // different values up to which a slider goes from one to the next
const PARTS = 6; // of the range of a column with more values: so many parts are shown one at a time

// The columns that a map begins with: longitude and latitude, or the first two.
export function mapColumns(view) {
  const found = view.geographic;
  if (!found) return [0, 1];
  return [found.x, found.y].map((name) => view.columns.findIndex((column) => column.name === name));
}

// Marks of what is not a candidate: where vehicles start.
export function startMarks(view, [x, y]) {
  return view.starts.filter(({ point }) => Number.isFinite(position(x, point[x.name])) && Number.isFinite(position(y, point[y.name])))
    .map(({ who, point }) => ({ who, x: position(x, point[x.name]), y: position(y, point[y.name]) }));
}

// Whether two columns are longitude and latitude in degrees, in this order.
export const areDegrees = (view, [x, y]) => Boolean(view.geographic?.degrees) && view.geographic.x === x.name && view.geographic.y === y.name;

// `describe(k)` returns the words for a point, `onPick(k)` is called with the position of one that the user chose,
// `legend(view, layer, pair)` returns the entries of the key, and `regionTool(drawing, across)` the tool that excludes a region.
export function candidatesMap(current, { describe, onPick, legend, regionTool, hasBest, words }) {
  const { columns } = current();
  let across = mapColumns(current());
  let layer = CANDIDATE_LAYERS[0][0];
  let shown = []; // positions of the points that are drawn
  const chosen = new Map(); // column: position of the slider; 0 is all values
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const sliders = el("div", { class: "fields" });
  const key = el("ul", { class: "key" });
  const coastlines = coastlineChoice(() => drawing.redraw());

  // The parts of a column that a slider goes through: [low, high] of each.
  function parts(k) {
    const values = distinct(current().coordinates[k]);
    if (values.length <= MOST_LEVELS) return values.map((value) => [value, value]);
    const { low, high } = columns[k];
    const step = (high - low) / PARTS;
    return Array.from({ length: PARTS }, (_, part) => [low + part * step, part === PARTS - 1 ? high : low + (part + 1) * step]);
  }
  const others = () => columns.flatMap((column, k) => (across.includes(k) ? [] : [k]));
  const isIn = (k, at) => {
    const part = chosen.get(k) ?? 0;
    if (part === 0) return true;
    const [low, high] = parts(k)[part - 1];
    const slack = 1e-9 * (columns[k].high - columns[k].low);
    return at >= low - slack && at <= high + slack;
  };
  const isNear = (point) => others().every((k) => isIn(k, position(columns[k], point[columns[k].name])));

  function getData() {
    const view = current();
    const pair = across.map((k) => columns[k]);
    const mark = (point) => ({ x: position(pair[0], point[pair[0].name]), y: position(pair[1], point[pair[1].name]) });
    const hidden = others();
    shown = view.mean.flatMap((_, index) => (hidden.every((k) => isIn(k, view.coordinates[k][index])) ? [index] : []));
    const pick = (values) => shown.map((index) => values[index]);
    const excluded = new Set(view.excluded);
    return {
      columns: pair, x: pick(view.coordinates[across[0]]), y: pick(view.coordinates[across[1]]),
      mean: pick(view.mean), sd: pick(view.sd), probability: pick(askedProbability(view)), classes: pick(view.classes),
      bands: view.bands ? { ...view.bands, of: pick(view.bands.of) } : null,
      ranges: { mean: view.mean, sd: view.sd, probability: askedProbability(view) },
      threshold: view.threshold, thresholds: [], levelSet: view.level_set, sign: view.sign, travels: view.travels, known: view.known,
      excluded: shown.flatMap((index, k) => (excluded.has(index) ? [k] : [])), scattered: true,
      failed: view.failures.map((row) => ({ ...mark(row.point), id: row.id })),
      measured: view.measurements.map((row) => ({ ...mark(row.point), id: row.id, who: row.who, faint: !isNear(row.point) })),
      pending: view.pending.map((suggestion) => ({ ...mark(suggestion.point), id: suggestion.id, faint: !isNear(suggestion.point) })),
      best: hasBest(view) ? mark(view.result.best.point) : null, background: null,
      degrees: areDegrees(view, pair), downwards: view.depth_column === pair[1].name && pair[1].low >= 0, starts: startMarks(view, pair), coastlines: areDegrees(view, pair) ? coastlines.lines() : [],
    };
  }
  const drawing = map(getData, (k) => { readout.textContent = describe(shown[k]); }, (k) => onPick(shown[k]), layer);

  const columnSelect = (which) => el("select", { onchange: (event) => {
    const column = Number(event.target.value);
    if (across[1 - which] === column) across[1 - which] = across[which]; // the two columns change places
    across[which] = column;
    drawInputs();
    drawing.redraw();
    region?.redraw();
    drawKey();
  } }, columns.map((column, k) => el("option", { value: k }, column.label)));
  const selects = [columnSelect(0), columnSelect(1)];

  function drawInputs() {
    selects.forEach((node, which) => { node.value = String(across[which]); });
    coastlines.node.hidden = !areDegrees(current(), across.map((k) => columns[k]));
    replace(sliders, others().map(slider));
  }

  // Without a choice the first slider shows the values of the next suggestion, or those that are least decided; others show all.
  function choose() {
    const view = current();
    for (const [place, k] of others().entries()) {
      if (chosen.has(k)) continue;
      if (place > 0 || parts(k).length < 2) continue;
      const found = parts(k);
      const holds = (at) => found.findIndex(([low, high]) => at >= low && at <= high);
      const counts = found.map(() => 0);
      view.coordinates[k].forEach((at, index) => {
        const part = holds(at);
        if (part >= 0) counts[part] += view.known ? view.probability[index] * (1 - view.probability[index]) : 0;
      });
      const next = view.pending.length ? holds(position(columns[k], view.pending[0].point[columns[k].name])) : -1;
      chosen.set(k, 1 + (next >= 0 ? next : counts.indexOf(Math.max(...counts))));
    }
  }

  function slider(k) {
    const column = columns[k];
    const found = parts(k);
    const text = () => {
      const part = chosen.get(k) ?? 0;
      if (part === 0) return "all";
      const [low, high] = found[part - 1].map((at) => formatValue(valueAt(column, at), 4));
      return low === high ? low : `${low} to ${high}`;
    };
    const value = el("span", {}, text());
    const input = el("input", { type: "range", min: 0, max: found.length, step: 1, value: chosen.get(k) ?? 0, "aria-valuetext": `${column.label} ${text()}` });
    input.addEventListener("input", () => {
      chosen.set(k, Number(input.value));
      value.textContent = text();
      input.setAttribute("aria-valuetext", `${column.label} ${text()}`);
      drawing.redraw();
    });
    const row = field(column.label, input, "shown: ");
    row.querySelector(".note").append(value);
    return row;
  }

  const layerChoice = radioButtons("Layer of the map", CANDIDATE_LAYERS, layer, (name) => {
    layer = name;
    drawing.setLayer(name);
    drawKey();
  });
  const drawKey = () => replace(key, legend(current(), layer, across.map((k) => columns[k])));
  const text = el("div", {});
  const region = regionTool(drawing, () => across);
  const node = el("figure", {},
    el("figcaption", { class: "row" }, el("h2", {}, "Map"), el("span", { class: "grow" }), layerChoice),
    el("div", { class: "fields" }, field("Horizontal axis", selects[0]), field("Vertical axis", selects[1]), sliders),
    drawing.node, readout, key, region?.node ?? null, coastlines.node, el("details", {}, el("summary", {}, "In words"), text));

  function redraw() {
    const view = current();
    choose();
    drawInputs();
    readout.textContent = "";
    drawing.node.setAttribute("aria-label", `${words(view).slice(0, 2).join(" ")} Arrow keys move from point to point, Enter chooses one.`);
    drawing.redraw();
    region?.redraw();
    drawKey();
    replace(text, words(view).map((sentence) => el("p", {}, sentence)));
  }
  return { node, redraw };
}
