// The plot of a study over its domain: a curve, a map, or slices and parallel coordinates; and the same in words.
// The plots are written by hand on canvas and SVG: a charting library would need a build step or a foreign server.

import { get, studyPath } from "./api.js";
import { CANDIDATE_LAYERS, areDegrees, candidatesMap, startMarks } from "./candidates-map.js";
import { coastlineChoice } from "./coastlines.js";
import { COLOUR_MAPS, bandColours, colourMapName } from "./colour.js";
import { curve } from "./curve.js";
import { el, field, radioButtons, replace, svg } from "./dom.js";
import { count, countNoun, formatPoint, formatValue, number, position, valueAt } from "./format.js";
import { colourRange, map, routes, thresholdsOf } from "./map.js";
import { parallelCoordinates } from "./parallel-coordinates.js";
import { formatPlace, labelAt } from "./places.js";
import { cross, diamond, star } from "./plot-area.js";
import { canDraw, regionDrawing } from "./region-drawing.js";
import { distinct, extent } from "./scale.js";
import { CLASS_NAMES, askedProbability, classOrder, paletteLetter } from "./sides.js";

const SLIDER_DELAY = 120; // milliseconds without movement after which a slice is requested
const NEAR_SLICE = 0.05; // distance from a slice up to which a measurement is not faint, as a share of each column
const LAYERS = [["mean", "Mean"], ["sd", "Uncertainty"], ["probability", "Probability"], ["classes", "Classes"]];
const INTERVAL = "90 % interval of each point"; // between the 5 % and 95 % quantiles

// `onPick(point)` is called with a point that the user chose. `study` has current(), tell() and writable, see suggestions.js.
export function domainPlot(study, onPick) {
  const view = study.current();
  switch (view.columns.length) {
    case 1: return wholeDomainPlot(study, onPick, curve);
    case 2: return wholeDomainPlot(study, onPick, map);
    default: return view.kind === "table" && view.shown === view.points && !isCategorical(view) ? tablePlot(study, onPick) : slicePlot(study, onPick);
  }
}

const isCategorical = (view) => view.columns.some((column) => column.choices);

// A table of three or more columns: a map of its candidates, and slices through the model, which are loaded when they are opened.
function tablePlot(study, onPick) {
  const { current } = study;
  const candidates = candidatesMap(current, {
    describe: (k) => pointText(current(), k),
    onPick: (k) => onPick(pointAt(current(), k), labelAt(current(), k)),
    legend: (view, layer, pair) => legend({ ...view, starts: startMarks(view, pair) }, layer, true, null, false), hasBest, words: sentences,
    regionTool: (drawing, across) => regionTool(study, drawing, across),
  });
  let slices = null;
  const holder = el("div", {});
  const details = el("details", { class: "slices", ontoggle: () => {
    if (!details.open) return;
    slices ??= slicePlot(study, onPick, false); // the map has the tool already
    replace(holder, slices.node);
    slices.redraw();
  } }, el("summary", {}, "Slices through the model, and all points across the columns"), holder);
  return {
    node: el("div", {}, candidates.node, details),
    redraw() {
      candidates.redraw();
      if (details.open) slices?.redraw();
    },
  };
}

// A point in words: its name and coordinates, the prediction and its class.
function pointText(view, k) {
  const place = formatPlace({ point: pointAt(view, k), label: labelAt(view, k), index: view.indices?.[k] ?? k }, view.columns);
  if (!view.known) return `${place}: no model yet`;
  return `${place}: ${number(view.mean[k])} ± ${number(view.sd[k], 2)}${view.unit ? ` ${view.unit}` : ""}, `
    + `90 % between ${number(view.lower[k])} and ${number(view.upper[k])}, ${className(view, k)}, ${probabilityName(view)} ${number(askedProbability(view)[k], 2)}`;
}

// The tool that excludes a region of a map of two columns; null where there is none.
function regionTool(study, drawing, across) {
  const columns = () => across().map((k) => study.current().columns[k]);
  if (!study.writable || !study.current().columns.every((column) => canDraw([column]))) return null;
  return regionDrawing(study, drawing, columns, () => across().map((k) => study.current().coordinates[k]));
}

const optimumName = (view) => (view.sign > 0 ? "maximum" : "minimum");

function className(view, k) {
  if (view.bands) return view.bands.names[view.bands.of[k]] ?? CLASS_NAMES.M;
  if (view.level_set) return CLASS_NAMES[view.classes[k]];
  return view.classes[k] === "M" ? `possible ${optimumName(view)}` : "ruled out";
}

function probabilityName(view) {
  if (view.probability_name) return view.probability_name;
  if (!view.level_set) return `probability of being the ${optimumName(view)}`;
  if (!view.bands) return `probability of being ${CLASS_NAMES[classOrder(view)[0]]}`;
  if (!view.thresholds.length) return `probability of being ${view.bands.names[0]}`;
  const [low, high] = view.thresholds.map((h) => number(h));
  return view.bands.inside ? `probability of being between ${low} and ${high}` : `probability of being above ${low}`;
}

const pointAt = (view, k) => Object.fromEntries(view.columns.map((column, d) => [column.name, valueAt(column, view.coordinates[d][k])]));
const hasBest = (view) => !view.level_set && view.result.steps > 0;

// -- one or two columns: the whole domain ------------------------------------------------------------------------------

function wholeDomainPlot(study, onPick, kind) {
  const { current } = study;
  const isMap = kind === map;
  const { geographic } = current();
  const layers = geographic ? CANDIDATE_LAYERS : LAYERS;
  let layer = layers[0][0];
  const coastlines = isMap && geographic?.degrees ? coastlineChoice(() => drawing.redraw()) : null;
  let background = null; // posterior on a grid, behind scattered points
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const getData = () => {
    const view = current();
    const [x, y] = view.columns;
    const mark = (point, value) => ({ x: position(x, point[x.name]), y: y ? position(y, point[y.name]) : value });
    const isLeftOut = (row) => view.result.outliers.includes(row.id);
    const onTarget = (row) => isMap || (!isLeftOut(row) && (!view.tasks || row.task === view.tasks[0]));
    return {
      columns: view.columns, x: view.coordinates[0], y: view.coordinates[1], mean: view.mean, sd: view.sd, lower: view.lower, upper: view.upper,
      probability: askedProbability(view), classes: view.classes, bands: view.bands, threshold: view.threshold, thresholds: view.thresholds,
      levelSet: view.level_set, sign: view.sign, travels: view.travels, excluded: view.excluded,
      failed: view.failures.map((row) => ({ ...mark(row.point), id: row.id })),
      quantity: view.quantity_label, known: view.known,
      degrees: isMap && areDegrees(view, view.columns), starts: isMap ? startMarks(view, view.columns) : [], coastlines: coastlines?.lines() ?? [],
      measured: view.measurements.filter(onTarget).map((row) => ({ ...mark(row.point, row.value), id: row.id, noise: row.noise, who: row.who })),
      pending: view.pending.map((suggestion) => ({ ...mark(suggestion.point), id: suggestion.id })),
      best: hasBest(view) ? mark(view.result.best.point, view.result.best.mean) : null, background,
    };
  };
  const showValue = (k) => {
    readout.textContent = pointText(current(), k);
  };
  const drawing = kind(getData, showValue, (k) => onPick(pointAt(current(), k), labelAt(current(), k)), isMap ? layer : undefined);
  const key = el("ul", { class: "key" });
  const words = el("div", {});
  const layerChoice = isMap ? radioButtons("Layer of the map", layers, layer, (name) => {
    layer = name;
    drawing.setLayer(name);
    replace(key, legend(current(), layer, true));
  }) : null;
  const region = isMap ? regionTool(study, drawing, () => [0, 1]) : null;
  const node = el("figure", {},
    el("figcaption", { class: "row" }, el("h2", {}, isMap ? "Map" : "Curve"), el("span", { class: "grow" }), layerChoice),
    drawing.node, readout, key, region?.node, coastlines?.node ?? null, el("details", {}, el("summary", {}, "In words"), words));

  function redraw() {
    const view = current();
    readout.textContent = "";
    drawing.node.setAttribute("aria-label", `${sentences(view).slice(0, 2).join(" ")} Arrow keys move from point to point, Enter chooses one.`);
    drawing.redraw();
    region?.redraw();
    replace(key, legend(view, layer, isMap));
    replace(words, sentences(view).map((text) => el("p", {}, text)));
    if (isMap && !isGrid(view)) loadBackground(view);
  }

  async function loadBackground(view) {
    const [x, y] = view.columns;
    const query = new URLSearchParams({ x: x.name, y: y.name });
    for (const column of view.columns) query.append("at", String(column.low));
    background = await get(`${studyPath(view.name)}/slice?${query}`).catch(() => null);
    drawing.redraw();
  }
  return { node, redraw };
}

const isGrid = (view) => distinct(view.coordinates[0]).length * distinct(view.coordinates[1]).length === view.shown;

// -- three or more columns: a slice through a point, and parallel coordinates ------------------------------------------

function slicePlot(study, onPick, hasRegionTool = true) {
  const { current } = study;
  const columns = current().columns;
  let across = [0, 1]; // the two columns of the slice
  let held = null; // the point that the slice goes through
  let slice = null;
  let layer = "mean";
  let moved = false; // whether the user moved a slider
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const sliders = el("div", { class: "fields" });
  const note = el("p", { class: "note" });
  const key = el("ul", { class: "key" });
  const classKey = el("ul", { class: "key" });
  const words = el("div", {});

  const cellPoint = (k) => {
    const [x, y] = slice.across.map((name) => columns.find((column) => column.name === name));
    const at = [slice.x[Math.floor(k / slice.y.length)], slice.y[k % slice.y.length]];
    return { ...slice.at, [x.name]: valueAt(x, at[0]), [y.name]: valueAt(y, at[1]) };
  };
  const isNear = (point) => columns.every((column, k) =>
    across.includes(k) || Math.abs(position(column, point[column.name]) - position(column, slice.at[column.name])) <= NEAR_SLICE * (column.high - column.low));
  const getData = () => {
    if (!slice) return null;
    const view = current();
    const [x, y] = across.map((k) => columns[k]);
    const mark = (point) => ({ x: position(x, point[x.name]), y: position(y, point[y.name]) });
    return {
      columns: [x, y], x: slice.x.flatMap((value) => slice.y.map(() => value)), y: slice.x.flatMap(() => slice.y),
      mean: slice.mean, sd: slice.sd, classes: null, threshold: view.threshold, thresholds: view.thresholds,
      levelSet: view.level_set, sign: view.sign, travels: false, failed: view.failures.map((row) => ({ ...mark(row.point), id: row.id })),
      measured: view.measurements.map((row) => ({ ...mark(row.point), id: row.id, faint: !isNear(row.point) })),
      pending: view.pending.map((suggestion) => ({ ...mark(suggestion.point), id: suggestion.id })),
      best: hasBest(view) ? mark(view.result.best.point) : null,
    };
  };
  const showValue = (k) => {
    readout.textContent = `${formatPoint(cellPoint(k), columns)}: ${number(slice.mean[k])} ± ${number(slice.sd[k], 2)}`;
  };
  const drawing = map(getData, showValue, (k) => onPick(nearestPoint(current(), cellPoint(k))));
  const parallel = parallelCoordinates(current);

  const columnSelect = (which) => el("select", { onchange: (event) => {
    const chosen = Number(event.target.value);
    if (across[1 - which] === chosen) across[1 - which] = across[which]; // the two columns change places
    across[which] = chosen;
    drawInputs();
    load();
    region?.redraw();
  } }, columns.map((column, k) => el("option", { value: k }, column.label)));
  const selects = [columnSelect(0), columnSelect(1)];

  function drawInputs() {
    selects.forEach((node, which) => { node.value = String(across[which]); });
    replace(sliders, columns.map((column, k) => (across.includes(k) ? null : slider(column))));
  }

  function slider(column) {
    const transform = column.log ? Math.log : (value) => value;
    const inverse = column.log ? Math.exp : (value) => value;
    const low = transform(column.low);
    const range = transform(column.high) - low;
    const value = el("span", {}, formatValue(held[column.name], 4));
    const percent = Math.round((100 * (transform(position(column, held[column.name])) - low)) / (range || 1));
    const input = el("input", { type: "range", min: 0, max: 100, value: percent });
    input.addEventListener("input", () => {
      moved = true;
      held[column.name] = valueAt(column, inverse(low + (input.value / 100) * range));
      value.textContent = formatValue(held[column.name], 4);
      input.setAttribute("aria-valuetext", `${column.label} ${formatValue(held[column.name], 4)}`);
      loadSoon();
    });
    const row = field(column.label, input, "held at ");
    row.querySelector(".note").append(value);
    return row;
  }

  let timer;
  function loadSoon() {
    clearTimeout(timer);
    timer = setTimeout(load, SLIDER_DELAY);
  }

  async function load() {
    const query = new URLSearchParams({ x: columns[across[0]].name, y: columns[across[1]].name });
    for (const column of columns) query.append("at", String(position(column, held[column.name])));
    try {
      slice = await get(`${studyPath(current().name)}/slice?${query}`);
    } catch (error) {
      note.textContent = error.message;
      return;
    }
    note.textContent = "A slice through the domain; measurements far from it are faint.";
    drawing.redraw();
    replace(key, legend(current(), layer, true, slice));
  }

  const layerChoice = radioButtons("Layer of the slice", LAYERS.slice(0, 2), layer, (name) => {
    layer = name;
    drawing.setLayer(name);
    replace(key, legend(current(), layer, true, slice));
  });
  const region = hasRegionTool ? regionTool(study, drawing, () => across) : null;
  const node = el("figure", {},
    el("figcaption", { class: "row" }, el("h2", {}, "Slice"), el("span", { class: "grow" }), layerChoice),
    el("div", { class: "fields" }, field("Horizontal axis", selects[0]), field("Vertical axis", selects[1])), sliders,
    drawing.node, readout, key, note, region?.node,
    el("details", {}, el("summary", {}, "All points across the columns"), parallel.node), classKey, el("details", {}, el("summary", {}, "In words"), words));

  function redraw() {
    const view = current();
    if (!moved) { // until the user moves a slider, the slice goes through the best point
      held = { ...view.result.best.point };
      drawInputs();
    }
    drawing.node.setAttribute("aria-label", `${sentences(view).slice(0, 2).join(" ")} Arrow keys move over the slice, Enter chooses the nearest point.`);
    load();
    parallel.redraw();
    replace(classKey, classCounts(view));
    replace(words, sentences(view).map((text) => el("p", {}, text)));
  }
  return { node, redraw };
}

// The row of a table that is nearest to a point; in a box and between the points of a grid, the point itself.
function nearestPoint(view, point) {
  if (view.kind !== "table") return point;
  let best = Infinity;
  let nearest = 0;
  for (let k = 0; k < view.shown; k += 1) {
    const distance = view.columns.reduce((sum, column, d) => sum + ((view.coordinates[d][k] - position(column, point[column.name])) / (column.high - column.low || 1)) ** 2, 0);
    if (distance < best) {
      best = distance;
      nearest = k;
    }
  }
  return pointAt(view, nearest);
}

// -- legend ------------------------------------------------------------------------------------------------------------

const legendMark = (...shapes) => el("span", { class: "plot inline" },
  svg("svg", { width: 18, height: 16, viewBox: "0 0 18 16", "aria-hidden": "true" }, shapes));

function classCounts(view) {
  const { above, below, undecided } = view.result.classified;
  const note = el("li", { class: "note" }, `(${view.class_note})`);
  const row = (letter, text) => el("li", {}, legendMark(svg("rect", { class: `area-${letter}`, x: 1, y: 2, width: 15, height: 12, rx: 2 })), text);
  if (view.bands) return [...bandCounts(view), note];
  if (view.level_set) {
    const counts = { H: above, M: undecided, L: below };
    return [...classOrder(view).map((letter) => row(paletteLetter(view, letter), `${CLASS_NAMES[letter]}: ${number(counts[letter])}`)), note];
  }
  return [row("M", `possible ${optimumName(view)}: ${number(undecided)}`), row("L", `ruled out: ${number(above + below)}`), note];
}

function bandCounts(view) {
  const { bands, undecided } = view.result.classified;
  const colours = bandColours(view.bands.names.length);
  const square = (attributes) => legendMark(svg("rect", { x: 1, y: 2, width: 15, height: 12, rx: 2, ...attributes }));
  const rows = view.bands.names.map((name, k) => el("li", {}, square({ fill: colours[k] }), `${name}: ${number(bands[name])}`));
  return [...rows.reverse(), el("li", {}, square({ class: "area-M" }), `undecided: ${number(undecided)}`)];
}

// `coloured`: the plot is a map, not a curve; `slice`: its values, if it is a slice; `contours`: thresholds are drawn.
function legend(view, layer, coloured, slice = null, contours = true) {
  const rows = [];
  const add = (mark, text) => rows.push(el("li", {}, mark, text));
  if (coloured && !view.known && !slice) rows.push(el("li", {}, "no model yet: all points look the same"));
  else if (coloured && layer !== "classes") rows.push(colourScale(view, slice ?? view, layer));
  else rows.push(...classCounts(view));
  if (!coloured) add(legendMark(svg("rect", { class: "band", x: 1, y: 2, width: 15, height: 12 })), INTERVAL);
  const thresholds = contours && (view.known || slice || !coloured) ? thresholdsOf(view) : [];
  if (thresholds.length) {
    const line = (css) => svg("path", { class: css, d: "M1 8H17" });
    const values = thresholds.map((threshold) => number(threshold)).join(", ");
    add(coloured ? legendMark(line("contour under"), line("contour")) : legendMark(line("level")), `${thresholds.length > 1 ? "thresholds" : "threshold"} ${values}${view.unit ? ` ${view.unit}` : ""}`);
  }
  if (view.measurements.length) {
    const dot = svg("circle", { class: "measured plain", cx: 9, cy: 8, r: 4.2, fill: "#888" });
    add(legendMark(dot), view.travels ? "route, later darker" : "measured, later darker");
    if (coloured && view.travels && view.vehicle_names.length) {
      for (const [k, { who }] of routes(view.measurements.map(({ who, id }) => ({ who, id })), view.starts).entries()) {
        if (who) add(legendMark(svg("path", { class: `route-key way-${k % 4}`, d: "M1 8H17", "stroke-dasharray": ["none", "6 3", "2 3", "6 3 2 3"][k % 4] })), who);
      }
    }
  }
  if (coloured && !slice && view.starts.length) add(legendMark(svg("rect", { class: "start", x: 4, y: 3, width: 10, height: 10 })), "start");
  if (view.pending.length) {
    add(legendMark(coloured ? diamond(9, 8, 7) : svg("path", { class: "pendingline", d: "M1 8H17" })), "suggested");
  }
  if (view.failures.length) add(legendMark(cross(9, 8, 5)), "failed");
  if (view.excluded.length && !slice) add(legendMark(svg("path", { class: "struck", d: "M3 14L15 2" })), "not suggested");
  if (hasBest(view)) add(legendMark(star(9, 8, 8)), "recommended");
  return rows;
}

function colourScale(view, values, layer) {
  const name = { mean: ` ${view.quantity_label ?? "estimate"}`, sd: " standard deviation", probability: ` ${probabilityName(view)}` }[layer];
  const [low, high] = colourRange(values, layer, view.level_set);
  if (low === high) return el("li", {}, `${number(low, 3)} everywhere:`, name);
  return el("li", {}, number(low, 3), colourBar(colourMapName(layer, view.level_set)), number(high, 3), name);
}

function colourBar(colours) {
  const canvas = el("canvas", { class: "bar", width: 256, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  COLOUR_MAPS[colours].forEach((colour, k) => { context.fillStyle = colour; context.fillRect(k, 0, 1, 1); });
  return canvas;
}

// -- the plot in words, for people who cannot see it -------------------------------------------------------------------

function sentences(view) {
  const { result } = view;
  if (!result.steps) return [`No measurements yet; all ${countNoun(view.points, "point")} are undecided.`, ...pendingSentences(view)];
  const [low, high] = extent(view.mean);
  const [end, where] = view.sign > 0 ? [high, "highest"] : [low, "lowest"];
  const at = view.mean.indexOf(end);
  const extreme = { point: pointAt(view, at), label: labelAt(view, at), index: view.indices?.[at] ?? at };
  const last = view.measurements.at(-1);
  return [
    ...(view.level_set ? levelSetSentences(view) : optimumSentences(view)),
    `Estimates${view.quantity_label ? ` of ${view.quantity_label}` : ""} range from ${number(low)} to ${number(high)}, ${where} at ${formatPlace(extreme, view.columns)}.`,
    `Last measurement: ${number(last.value)} at ${formatPlace(last, view.columns)}.`,
    ...pendingSentences(view),
  ];
}

function bandSentences(view) {
  const { bands, undecided } = view.result.classified;
  const counts = view.bands.names.map((name) => `${count(bands[name])} ${name}`);
  return [`${counts.join(", ")}; ${count(undecided)} undecided, of ${countNoun(view.points, "point")} (${view.class_note}).`];
}

function levelSetSentences(view) {
  if (view.bands) return bandSentences(view);
  const { above, below, undecided } = view.result.classified;
  const counts = { H: above, L: below };
  const [asked, , other] = classOrder(view);
  const texts = [`${countNoun(counts[asked], "point")} ${CLASS_NAMES[asked]}, ${count(counts[other])} ${CLASS_NAMES[other]} and ${count(undecided)} undecided, of ${count(view.points)} (${view.class_note}).`];
  for (const letter of [asked, "M"]) {
    const ranges = classRanges(view, letter);
    if (ranges) texts.push(`The points ${CLASS_NAMES[letter]} lie at ${ranges}.`);
  }
  return texts;
}

function optimumSentences(view) {
  const { best, best_observed: measured, classified } = view.result;
  const ranges = classRanges(view, "M");
  return [
    `The recommended point is ${formatPlace(best, view.columns)}, with ${number(best.mean)} ± ${number(best.sd, 2)}.`,
    `With ${number(100 * view.confidence)} % probability the ${optimumName(view)} is at one of ${countNoun(classified.undecided, "point")}${ranges ? `, at ${ranges}` : ""}.`,
    ...(measured ? [`The best measured value is ${number(measured.value)}, at ${formatPlace(measured, view.columns)} (measurement ${measured.id}).`] : []),
  ];
}

function pendingSentences(view) {
  if (!view.pending.length) return [];
  const points = view.pending.map((suggestion) => formatPlace(suggestion, view.columns));
  return [`Suggested next: ${points.join("; ")}.`];
}

// The ranges of the columns over the points of a class, or null if it has none.
function classRanges(view, letter) {
  const inside = [...view.classes].flatMap((other, k) => (other === letter ? [k] : []));
  if (!inside.length) return null;
  return view.columns.map((column, d) => {
    const [low, high] = extent(inside.map((k) => view.coordinates[d][k]));
    const [first, last] = [low, high].map((at) => formatValue(valueAt(column, at), 4));
    return low === high ? `${column.label} ${first}` : `${column.label} ${first} to ${last}`;
  }).join(" and ");
}
