// Where the study stands on its domain: a curve, a map, or slices and parallel coordinates; and the same in words.

import { get, of } from "./api.js";
import { RAMPS } from "./colour.js";
import { curve } from "./curve.js";
import { choice, el, field, replace, svg } from "./dom.js";
import { number, place, plural } from "./format.js";
import { map } from "./map.js";
import { parallel } from "./parallel-coordinates.js";
import { diamond, star } from "./plot-area.js";
import { distinct, extent } from "./scale.js";

export function picture(current, pick) {
  const dimensions = current().columns.length;
  return dimensions === 1 ? flat(current, pick, curve) : dimensions === 2 ? flat(current, pick, map) : deep(current, pick);
}

const NAMES = { H: "above", M: "open", L: "below" };

function standing(view, k) {
  if (view.level_set) return NAMES[view.classes[k]];
  return view.classes[k] === "M" ? `a possible ${view.sign > 0 ? "maximum" : "minimum"}` : "ruled out";
}

const at = (view, k) => Object.fromEntries(view.columns.map((column, d) => [column.name, view.places[d][k]]));

function flat(current, pick, kind) {
  let [layer, plane] = ["mean", null];
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const scene = () => {
    const view = current();
    const [x, y] = view.columns;
    const spot = (point, value) => ({ x: point[x.name], y: y ? point[y.name] : value });
    const best = view.result.best;
    return {
      columns: view.columns, x: view.places[0], y: view.places[1], mean: view.mean, sd: view.sd, lower: view.lower, upper: view.upper,
      classes: view.classes, threshold: view.threshold, levelSet: view.level_set, travels: view.travels,
      measured: view.measurements.filter((row) => y || !view.tasks || row.task === view.tasks[0]).map((row) => ({ ...spot(row.point, row.value), noise: row.noise })),
      pending: view.pending.map((s) => spot(s.point)),
      best: view.level_set || !view.result.steps ? null : spot(best.point, best.mean), plane,
    };
  };
  const tell = (k) => {
    const view = current();
    readout.textContent = `${place(at(view, k), view.columns)}: ${number(view.mean[k])} ± ${number(view.sd[k], 2)}, `
      + `between ${number(view.lower[k])} and ${number(view.upper[k])}, ${standing(view, k)}`;
  };
  const drawing = kind(scene, tell, (k) => pick(at(current(), k)));
  const key = el("ul", { class: "key" });
  const words = el("div", {});
  const tabs = kind === map ? choice("What the map shows", [["mean", "Mean"], ["sd", "Uncertainty"], ["classes", "Settled"]], layer, (name) => {
    layer = name;
    drawing.show(name);
    replace(key, legend(current(), layer, true));
  }) : null;
  const node = el("figure", {},
    el("figcaption", { class: "row" }, el("h2", {}, kind === map ? "Map" : "Curve"), el("span", { class: "grow" }), tabs),
    drawing.node, readout, key, el("details", {}, el("summary", {}, "In words"), words));
  node.classList.add("picture");
  return {
    node,
    redraw() {
      const view = current();
      readout.textContent = "";
      drawing.node.setAttribute("aria-label", `${sentences(view).slice(0, 2).join(" ")} Arrow keys move from point to point, Enter chooses one.`);
      drawing.redraw();
      replace(key, legend(view, layer, kind === map));
      replace(words, sentences(view).map((text) => el("p", {}, text)));
      if (kind === map && !gridded(view)) fill(view);
    },
  };

  async function fill(view) {
    const [x, y] = view.columns;
    const asked = new URLSearchParams({ x: x.name, y: y.name });
    for (const column of view.columns) asked.append("at", String(column.low));
    plane = await get(`${of(view.name)}/slice?${asked}`).catch(() => null);
    drawing.redraw();
  }
}

const gridded = (view) => distinct(view.places[0]).length * distinct(view.places[1]).length === view.shown;

// Three or more columns: a plane through a point, chosen by its two columns and where the others are held.
function deep(current, pick) {
  const columns = current().columns;
  let [across, held, plane, layer, moved] = [[0, 1], null, null, "mean", false];
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  const sliders = el("div", { class: "fields" });
  const note = el("p", { class: "note" });
  const key = el("ul", { class: "key" });
  const words = el("div", {});
  const cell = (k) => ({ ...plane.at, [plane.across[0]]: plane.x[Math.floor(k / plane.y.length)], [plane.across[1]]: plane.y[k % plane.y.length] });
  const scene = () => {
    if (!plane) return null;
    const view = current();
    const pair = across.map((k) => columns[k]);
    const spot = (point) => ({ x: point[pair[0].name], y: point[pair[1].name] });
    const near = (point) => columns.every((column, k) => across.includes(k) || Math.abs(point[column.name] - plane.at[column.name]) <= 0.05 * (column.high - column.low));
    return {
      columns: pair, x: plane.x.flatMap((v) => plane.y.map(() => v)), y: plane.x.flatMap(() => plane.y),
      mean: plane.mean, sd: plane.sd, classes: null, threshold: view.threshold, levelSet: view.level_set, travels: false,
      measured: view.measurements.map((row) => ({ ...spot(row.point), faint: !near(row.point) })),
      pending: view.pending.map((s) => spot(s.point)),
      best: view.level_set || !view.result.steps ? null : spot(view.result.best.point),
    };
  };
  const drawing = map(scene, (k) => {
    readout.textContent = `${place(cell(k), columns)}: ${number(plane.mean[k])} ± ${number(plane.sd[k], 2)}`;
  }, (k) => pick(nearest(current(), cell(k))));
  const lines = parallel(current);

  const select = (which) => el("select", { onchange: (event) => {
    const chosen = Number(event.target.value);
    if (across[1 - which] === chosen) across[1 - which] = across[which];
    across[which] = chosen;
    axisInputs();
    load();
  } }, columns.map((column, k) => el("option", { value: k }, column.label)));
  const selects = [select(0), select(1)];

  function axisInputs() {
    selects.forEach((node, which) => { node.value = String(across[which]); });
    replace(sliders, columns.map((column, k) => {
      if (across.includes(k)) return null;
      const [f, g] = column.log ? [Math.log, Math.exp] : [(v) => v, (v) => v];
      const shown = el("span", {}, number(held[column.name]));
      const range = el("input", { type: "range", min: 0, max: 100, value: Math.round((100 * (f(held[column.name]) - f(column.low))) / (f(column.high) - f(column.low) || 1)) });
      range.addEventListener("input", () => {
        moved = true;
        held[column.name] = g(f(column.low) + (range.value / 100) * (f(column.high) - f(column.low)));
        shown.textContent = number(held[column.name]);
        range.setAttribute("aria-valuetext", `${column.label} ${number(held[column.name])}`);
        later();
      });
      const row = field(column.label, range, "held at ");
      row.querySelector(".note").append(shown);
      return row;
    }));
  }

  let timer;
  const later = () => { clearTimeout(timer); timer = setTimeout(load, 120); };
  async function load() {
    const asked = new URLSearchParams({ x: columns[across[0]].name, y: columns[across[1]].name });
    for (const column of columns) asked.append("at", String(held[column.name]));
    try {
      plane = await get(`${of(current().name)}/slice?${asked}`);
    } catch (error) {
      note.textContent = error.message;
      return;
    }
    note.textContent = "A plane through the domain; faint measurements lie off it.";
    drawing.redraw();
    replace(key, legend({ ...current(), ...plane, classes: current().classes }, layer, true, plane));
  }

  const tabs = choice("What the slice shows", [["mean", "Mean"], ["sd", "Uncertainty"]], layer, (name) => {
    layer = name;
    drawing.show(name);
    replace(key, legend(current(), layer, true, plane));
  });
  const node = el("figure", {},
    el("figcaption", { class: "row" }, el("h2", {}, "Slice"), el("span", { class: "grow" }), tabs),
    el("div", { class: "fields" }, field("Across", selects[0]), field("Up", selects[1])), sliders,
    drawing.node, readout, key, note, el("h2", {}, "All columns at once"), lines.node,
    el("ul", { class: "key" }, counts(current())), el("details", {}, el("summary", {}, "In words"), words));
  node.classList.add("picture");
  const bottom = node.querySelectorAll(".key")[1];
  return {
    node,
    redraw() {
      const view = current();
      if (!moved) { // as long as nobody has moved a slider, the plane goes with the best point
        held = { ...view.result.best.point };
        axisInputs();
      }
      drawing.node.setAttribute("aria-label", `${sentences(view).slice(0, 2).join(" ")} Arrow keys move over the slice, Enter chooses the nearest point.`);
      load();
      lines.redraw();
      replace(bottom, counts(view));
      replace(words, sentences(view).map((text) => el("p", {}, text)));
    },
  };
}

// The point of a finite domain next to a place; in a box and between the points of a grid the place itself will do.
function nearest(view, point) {
  if (view.kind !== "table") return point;
  let [best, found] = [Infinity, 0];
  for (let k = 0; k < view.shown; k += 1) {
    const distance = view.columns.reduce((sum, column, d) => sum + ((view.places[d][k] - point[column.name]) / (column.high - column.low || 1)) ** 2, 0);
    if (distance < best) [best, found] = [distance, k];
  }
  return at(view, found);
}

const sample = (...shapes) => svg("svg", { width: 18, height: 16, viewBox: "0 0 18 16", "aria-hidden": "true" }, shapes);

function counts(view) {
  const { result } = view;
  const box = (letter) => sample(svg("rect", { class: `area-${letter}`, x: 1, y: 2, width: 15, height: 12, rx: 2 }));
  const row = (letter, text) => el("li", { class: "plot-key" }, el("span", { class: "plot inline" }, box(letter)), text);
  if (view.level_set) return [row("H", `above (H): ${number(result.above)}`), row("M", `open (M): ${number(result.potential)}`), row("L", `below (L): ${number(result.below)}`)];
  return [row("M", `possible ${view.sign > 0 ? "maximum" : "minimum"} (M): ${number(result.potential)}`), row("L", `ruled out: ${number(result.above + result.below)}`)];
}

function legend(view, layer, coloured, plane = null) {
  const values = plane ?? view;
  const rows = [];
  if (coloured && layer !== "classes") {
    const [low, high] = layer === "sd" ? [0, extent(values.sd)[1]] : extent(values.mean);
    rows.push(el("li", {}, ...(low === high ? [`${number(low, 3)} everywhere:`] : [number(low, 3), ramp(layer), number(high, 3)]), layer === "sd" ? " standard deviation" : " posterior mean"));
  }
  if (layer === "classes" || !coloured) rows.push(...counts(view));
  const mark = (shape, text) => el("li", {}, el("span", { class: "plot inline" }, sample(shape)), text);
  if (view.threshold !== null) {
    const line = coloured ? [svg("path", { class: "contour under", d: "M1 8H17" }), svg("path", { class: "contour", d: "M1 8H17" })] : [svg("path", { class: "level", d: "M1 8H17" })];
    rows.push(el("li", {}, el("span", { class: "plot inline" }, sample(...line)), `h = ${number(view.threshold)}`));
  }
  if (view.measurements.length) rows.push(mark(svg("circle", { class: "measured plain", cx: 9, cy: 8, r: 4.2, fill: "#888" }), view.travels ? "route, later darker" : "measured, later darker"));
  if (view.pending.length) rows.push(mark(coloured ? diamond(9, 8, 7) : svg("path", { class: "pendingline", d: "M1 8H17" }), "suggested"));
  if (!view.level_set && view.result.steps) rows.push(mark(star(9, 8, 8), "best"));
  return rows;
}

function ramp(layer) {
  const canvas = el("canvas", { class: "bar", width: 256, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  RAMPS[layer].forEach((colour, k) => { context.fillStyle = colour; context.fillRect(k, 0, 1, 1); });
  return canvas;
}

// The picture for those who cannot see it.
function sentences(view) {
  const { result } = view;
  if (!result.steps) return [`Nothing was measured yet; all ${plural(view.points, "point")} are open.`, ...suggested(view)];
  const said = [];
  if (view.level_set) {
    said.push(`${plural(result.above, "point")} above, ${result.below.toLocaleString("en-GB")} below and ${result.potential.toLocaleString("en-GB")} still open, of ${view.points.toLocaleString("en-GB")}.`);
    for (const [letter, name] of [["H", "above"], ["M", "open"]]) {
      const ranges = span(view, letter);
      if (ranges) said.push(`The points ${name} lie at ${ranges}.`);
    }
  } else {
    said.push(`The best point so far is ${place(result.best.point, view.columns)}, with ${number(result.best.mean)} ± ${number(result.best.sd, 2)}.`);
    const ranges = span(view, "M");
    said.push(`${plural(result.potential, "point")} may still be the ${view.sign > 0 ? "maximum" : "minimum"}${ranges ? `, at ${ranges}` : ""}.`);
  }
  const [low, high] = extent(view.mean);
  const highest = view.mean.indexOf(high);
  said.push(`The posterior mean goes from ${number(low)} to ${number(high)}, highest at ${place(at(view, highest), view.columns)}.`);
  const last = view.measurements.at(-1);
  said.push(`Last measured: ${number(last.value)} at ${place(last.point, view.columns)}.`);
  return [...said, ...suggested(view)];
}

const suggested = (view) => (view.pending.length ? [`Suggested next: ${view.pending.map((s) => place(s.point, view.columns)).join("; ")}.`] : []);

function span(view, letter) {
  const inside = [...view.classes].flatMap((found, k) => (found === letter ? [k] : []));
  if (!inside.length) return null;
  return view.columns.map((column, d) => {
    const [low, high] = extent(inside.map((k) => view.places[d][k]));
    return low === high ? `${column.label} ${number(low)}` : `${column.label} ${number(low)} to ${number(high)}`;
  }).join(" and ");
}
