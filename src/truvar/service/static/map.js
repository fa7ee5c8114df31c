// The map of a plane: cells or dots coloured by mean, uncertainty, probability or class; contour at h, route and suggestions.

import { colourMapName, orderColour, pointClassColour, valueColour } from "./colour.js";
import { contour } from "./contour.js";
import { svg } from "./dom.js";
import { tickText } from "./format.js";
import { axes, byImportance, cross, diamond, labels, plotArea, star } from "./plot-area.js";
import { distinct, edges, extent, scale } from "./scale.js";

const DASHES = ["none", "6 3", "2 3", "6 3 2 3"]; // of the routes of several vehicles
const MIN_HEIGHT = 250; // pixels
const MAX_HEIGHT = 460; // pixels
const ASPECT = 0.52; // height over width
const KILOMETRES_PER_DEGREE = 111.2; // of latitude
const BAR_SHARE = 0.25; // of the width that a scale bar takes, at most
const BAR_ROOM = 34; // pixels that are kept free below the points for the scale bar
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// `getData()` returns null or what to draw: columns [x, y], x[], y[], mean[], sd[], probability[] and classes or null,
// threshold, levelSet, travels, measured [{x, y, id, faint}], pending [{x, y, id}], best {x, y} or null, background slice or
// null. Optional: thresholds [h, ...] instead of one, bands {names, of[]} instead of classes, failed [{x, y, id}],
// excluded: indices of points that are not suggested; known: false if there is no model, so that no field is drawn; scattered:
// the points are marks even if they fill a grid; ranges {mean[], sd[], probability[]} that colours cover, if not only those shown;
// degrees: the columns are longitude and latitude; downwards: the vertical column is a depth; starts [{x, y, who}] of vehicles;
// coastlines [[[x, y], ...], ...].
// `onMove(k)` and `onPick(k)` get the index of a point. Of the result, `frame()` returns {x, y, box}: the scales of the axes
// and the area between them in pixels, or null before anything is drawn; while `setPicking(false)` no point is chosen.
export function map(getData, onMove, onPick, layer = "mean") {
  let cursor = null; // index of the point under the cursor
  let pixels = null; // {x, y}: positions of the points, and {frame}
  let isPicking = true;
  const { node, overlay, redraw } = plotArea(
    (width) => Math.round(Math.max(MIN_HEIGHT, Math.min(ASPECT * width, MAX_HEIGHT))),
    (area) => {
      const data = getData();
      pixels = data && draw(area, data, layer);
      if (pixels) drawCursor();
    },
    { tabindex: "0", role: "application", "aria-roledescription": "map" },
  );

  function drawCursor() {
    overlay.querySelector(".cursor")?.remove();
    if (cursor === null || cursor >= pixels.x.length) return;
    overlay.append(svg("circle", { class: "cursor", cx: pixels.x[cursor], cy: pixels.y[cursor], r: 8 }));
  }

  function moveTo(k) {
    if (k === null || k === cursor) return;
    cursor = k;
    drawCursor();
    onMove(k);
  }

  function nearest(event) {
    const box = node.getBoundingClientRect();
    const px = event.clientX - box.left;
    const py = event.clientY - box.top;
    return smallest(pixels.x.length, (k) => (pixels.x[k] - px) ** 2 + (pixels.y[k] - py) ** 2);
  }

  // The next point in a direction: the nearest within 45 degrees of it.
  function neighbour(dx, dy) {
    if (cursor === null) return Math.floor(pixels.x.length / 2);
    const found = smallest(pixels.x.length, (k) => {
      const x = pixels.x[k] - pixels.x[cursor];
      const y = pixels.y[k] - pixels.y[cursor];
      const along = x * dx + y * dy;
      const aside = Math.abs(x * dy) + Math.abs(y * dx);
      return along > 0.01 && aside <= along + 0.01 ? along + 2 * aside : Infinity;
    });
    return found ?? cursor;
  }

  node.addEventListener("pointermove", (event) => pixels && isPicking && event.pointerType !== "touch" && moveTo(nearest(event)));
  node.addEventListener("click", (event) => { if (pixels && isPicking) { moveTo(nearest(event)); onPick(cursor); } });
  node.addEventListener("keydown", (event) => {
    if (!pixels) return;
    if (ARROWS[event.key]) {
      event.preventDefault();
      moveTo(neighbour(...ARROWS[event.key]));
    } else if (event.key === "Enter" && cursor !== null) {
      event.preventDefault();
      onPick(cursor);
    }
  });
  return {
    node, redraw: () => { cursor = null; redraw(); }, setLayer(name) { layer = name; redraw(); },
    frame: () => pixels?.frame ?? null, setPicking(on) { isPicking = on; },
  };
}

// The index at which a function is smallest, or null if it is nowhere finite.
function smallest(length, distance) {
  let best = Infinity;
  let found = null;
  for (let k = 0; k < length; k += 1) {
    const here = distance(k);
    if (here < best) {
      best = here;
      found = k;
    }
  }
  return found;
}

function draw(area, data, layer) {
  const { context, overlay, width, height } = area;
  const box = { left: 52, top: 24, right: width - 12, bottom: height - 40 };
  const [xColumn, yColumn] = data.columns;
  const xs = distinct(data.x);
  const ys = distinct(data.y);
  const isGrid = !data.scattered && xs.length * ys.length === data.x.length && xs.length > 1 && ys.length > 1;
  const starts = data.starts ?? [];
  const xEdges = isGrid ? edges(xs, xColumn.log) : withMargin(xColumn, starts.map((start) => start.x));
  const yEdges = isGrid ? edges(ys, yColumn.log) : withMargin(yColumn, starts.map((start) => start.y));
  let xLimits = [xEdges[0], xEdges.at(-1)];
  let yLimits = [yEdges[0], yEdges.at(-1)];
  if (data.degrees) {
    xLimits = extent([...xLimits, ...starts.map((start) => start.x)]);
    yLimits = extent([...yLimits, ...starts.map((start) => start.y)]);
    [xLimits, yLimits] = withAspect(xLimits, yLimits, box);
  }
  const x = scale(...xLimits, box.left, box.right, xColumn.log);
  const y = data.downwards ? scale(...yLimits, box.top, box.bottom, yColumn.log) : scale(...yLimits, box.bottom, box.top, yColumn.log);
  x.label = (tick) => tickText(xColumn, tick);
  y.label = (tick) => tickText(yColumn, tick);
  const colour = data.known === false ? noColour() : pointColour(data, layer);
  drawCoastlines(overlay, data.coastlines ?? [], x, y, box);
  if (isGrid) drawGrid(context, overlay, data, { xs, ys, xEdges, yEdges, x, y }, colour);
  else drawDots(context, overlay, data, layer, { box, x, y }, colour);
  axes(overlay, box, x, y, { x: xColumn.label, y: yColumn.label });
  drawMarks(overlay, data, x, y, box);
  if (data.degrees) drawScaleBar(overlay, x, box, (yLimits[0] + yLimits[1]) / 2);
  return { x: data.x.map(x), y: data.y.map(y), frame: { x, y, box } };
}

function drawGrid(context, overlay, data, { xs, ys, xEdges, yEdges, x, y }, colour) {
  const columnOf = new Map(xs.map((value, i) => [value, i]));
  const rowOf = new Map(ys.map((value, j) => [value, j]));
  const indexOf = new Int32Array(xs.length * ys.length); // of the point in column i and row j
  for (let k = 0; k < data.x.length; k += 1) {
    const i = columnOf.get(data.x[k]);
    const j = rowOf.get(data.y[k]);
    indexOf[i * ys.length + j] = k;
    context.fillStyle = colour(k);
    fillCell(context, xEdges, yEdges, i, j, x, y);
  }
  for (const k of data.excluded ?? []) strikeCell(context, xEdges, yEdges, columnOf.get(data.x[k]), rowOf.get(data.y[k]), x, y);
  if (data.known !== false) drawContour(overlay, data, xs, ys, (i, j) => data.mean[indexOf[i * ys.length + j]], x, y);
}

// Without a model all points look the same.
function noColour() {
  return () => "#9aa6a6";
}

// Limits of longitude and latitude at which a kilometre is as long in both directions, with room for the scale bar in the
// south: the shorter side is extended.
function withAspect([west, east], [lowest, north], box) {
  const south = lowest - ((north - lowest) * BAR_ROOM) / (box.bottom - box.top - BAR_ROOM);
  const shrink = Math.max(Math.cos(((south + north) / 2) * (Math.PI / 180)), 0.05);
  const perPixelX = ((east - west) * shrink) / (box.right - box.left);
  const perPixelY = (north - south) / (box.bottom - box.top);
  const extended = ([low, high], factor) => {
    const middle = (low + high) / 2;
    return [middle - (factor * (high - low)) / 2, middle + (factor * (high - low)) / 2];
  };
  if (perPixelX > perPixelY) return [[west, east], extended([south, north], perPixelX / perPixelY)];
  return [extended([west, east], perPixelY / perPixelX), [south, north]];
}

// A bar of a round number of kilometres in the lower left corner.
function drawScaleBar(overlay, x, box, latitude) {
  const perDegree = KILOMETRES_PER_DEGREE * Math.max(Math.cos((latitude * Math.PI) / 180), 0.05);
  const pixelsPerKilometre = Math.abs(x(1) - x(0)) / perDegree;
  const longest = (BAR_SHARE * (box.right - box.left)) / pixelsPerKilometre;
  const power = 10 ** Math.floor(Math.log10(longest));
  const length = Math.max(...[1, 2, 5].map((factor) => factor * power).filter((size) => size <= longest));
  const text = length >= 1 ? `${length} km` : `${Number((1000 * length).toPrecision(3))} m`;
  const left = box.left + 12;
  const bottom = box.bottom - 12;
  const path = `M${left} ${bottom - 5}V${bottom}H${(left + length * pixelsPerKilometre).toFixed(1)}V${bottom - 5}`;
  overlay.append(svg("path", { class: "scalebar under", d: path }), svg("path", { class: "scalebar", d: path }),
    svg("text", { class: "kilometres", x: left + (length * pixelsPerKilometre) / 2, y: bottom - 8, "text-anchor": "middle" }, text));
}

// Lines that leave the box end at its border.
function drawCoastlines(overlay, lines, x, y, box) {
  if (!lines.length) return;
  const id = `coast-${Math.random().toString(36).slice(2)}`;
  overlay.append(svg("clipPath", { id }, svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top })));
  const d = lines.map((line) => `M${line.map(([longitude, latitude]) => `${x(longitude).toFixed(1)} ${y(latitude).toFixed(1)}`).join("L")}`).join("");
  overlay.append(svg("path", { class: "coast", d, "clip-path": `url(#${id})` }));
}

function drawDots(context, overlay, data, layer, { box, x, y }, colour) {
  if (data.background && data.known !== false) drawBackground(context, overlay, data, layer, { box, x, y });
  const areaPerPoint = (0.55 * (box.right - box.left) * (box.bottom - box.top)) / data.x.length;
  const size = Math.max(3, Math.min(data.scattered ? 9 : 14, Math.sqrt(areaPerPoint)));
  for (const k of drawingOrder(data, layer)) {
    const square = [x(data.x[k]) - size / 2, y(data.y[k]) - size / 2, size, size];
    context.fillStyle = colour(k);
    context.fillRect(...square);
    if (data.background) {
      context.strokeStyle = "#00000055";
      context.strokeRect(...square);
    }
  }
  for (const k of data.excluded ?? []) strike(context, x(data.x[k]) - size / 2, y(data.y[k]) - size / 2, size, size);
}

// The points in the order in which they are drawn. Some may share a place, such as the depths of a station: what is asked for lies
// on top, and otherwise the largest value.
function drawingOrder(data, layer) {
  const order = data.x.map((_, k) => k);
  if (!data.scattered || data.known === false) return order;
  const rank = { L: data.sign < 0 ? 2 : 0, M: 1, H: data.sign < 0 ? 0 : 2 };
  const front = layer === "classes" && data.classes ? [...data.classes].map((letter) => rank[letter] ?? 1) : data[layer];
  return front ? order.sort((a, b) => front[a] - front[b]) : order;
}

// Excluded points are struck through; many beside each other become a hatched area.
function strike(context, left, top, width, height) {
  for (const [colour, line] of [["#ffffffcc", 3], ["#14191b", 1.2]]) {
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.beginPath();
    context.moveTo(left, top + height);
    context.lineTo(left + width, top);
    context.stroke();
  }
  context.lineWidth = 1;
}

// Between scattered points the posterior shows through, paler, with the contour.
function drawBackground(context, overlay, data, layer, { box, x, y }) {
  const { background } = data;
  if (background[layer]) { // classes and probabilities belong to the points
    const colour = pointColour(data, layer, background);
    const xEdges = edges(background.x, data.columns[0].log);
    const yEdges = edges(background.y, data.columns[1].log);
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
    context.globalAlpha = 0.55;
    for (let i = 0; i < background.x.length; i += 1) {
      for (let j = 0; j < background.y.length; j += 1) {
        context.fillStyle = colour(i * background.y.length + j);
        fillCell(context, xEdges, yEdges, i, j, x, y);
      }
    }
    context.restore();
  }
  drawContour(overlay, data, background.x, background.y, (i, j) => background.mean[i * background.y.length + j], x, y);
}

const cell = (xEdges, yEdges, i, j, x, y) => [x(xEdges[i]), x(xEdges[i + 1]), y(yEdges[j + 1]), y(yEdges[j])].map(Math.round);

function fillCell(context, xEdges, yEdges, i, j, x, y) {
  const [left, right, top, bottom] = cell(xEdges, yEdges, i, j, x, y);
  context.fillRect(left, top, right - left, bottom - top);
}

function strikeCell(context, xEdges, yEdges, i, j, x, y) {
  const [left, right, top, bottom] = cell(xEdges, yEdges, i, j, x, y);
  strike(context, left, top, right - left, bottom - top);
}

// The thresholds of a study, one or several; none for an optimum.
export const thresholdsOf = (data) => data.thresholds ?? (data.threshold === null ? [] : [data.threshold]);

function drawContour(overlay, data, xs, ys, value, x, y) {
  for (const threshold of thresholdsOf(data)) {
    const d = contour(xs, ys, value, threshold, x, y);
    if (d) overlay.append(svg("path", { class: "contour under", d }), svg("path", { class: "contour", d }));
  }
}

// The limits of a column and of further positions, with a margin.
function withMargin(column, more = []) {
  const low = Math.min(column.low, ...more);
  const high = Math.max(column.high, ...more);
  if (column.log) return [low / 1.15, high * 1.15];
  const margin = 0.03 * (high - low || 1);
  return [low - margin, high + margin];
}

// A function from an index to a colour. `shown` has the values; the range of colours is that of `data`.
function pointColour(data, layer, shown = data) {
  if (layer === "classes" && data.classes) return pointClassColour(data);
  const [low, high] = colourRange(data.ranges ?? data, layer, data.levelSet);
  const name = colourMapName(layer, data.levelSet);
  return (k) => valueColour(name, shown[layer][k], low, high);
}

// The values at both ends of the colours of a layer.
export function colourRange(data, layer, levelSet) {
  if (layer === "mean") return extent(data.mean);
  if (layer === "probability" && levelSet) return [0, 1];
  return [0, extent(data[layer])[1]];
}

// The measurements of each vehicle in the order of their ids, after its start; all of them, as told, if there is a single crew.
export function routes(measured, starts = []) {
  const names = [...new Set(measured.map((mark) => mark.who).filter(Boolean))];
  const start = (name) => starts.filter((each) => (each.who ?? null) === name);
  if (!names.length) return [{ who: null, way: [...start(null), ...measured] }].filter(({ way }) => way.length > 1);
  return names.map((who) => ({ who, way: [...start(who), ...measured.filter((mark) => mark.who === who).sort((a, b) => a.id - b.id)] }))
    .filter(({ way }) => way.length > 1);
}

function drawMarks(overlay, data, x, y, box) {
  const inPixels = (mark) => ({ ...mark, px: x(mark.x), py: y(mark.y) });
  const measured = data.measured.map(inPixels);
  const pending = data.pending.map(inPixels);
  const failed = (data.failed ?? []).map(inPixels);
  const starts = (data.starts ?? []).map(inPixels);
  for (const [number, { way }] of data.travels ? routes(measured, starts).entries() : []) {
    const path = way.map(({ px, py }) => `${px.toFixed(1)} ${py.toFixed(1)}`).join("L");
    const dashes = DASHES[number % DASHES.length];
    overlay.append(svg("path", { class: "route-halo", d: `M${path}` }), svg("path", { class: `route way-${number % 4}`, d: `M${path}`, "stroke-dasharray": dashes }));
  }
  for (const { px, py } of starts) overlay.append(svg("rect", { class: "start", x: px - 5, y: py - 5, width: 10, height: 10 }));
  measured.forEach(({ px, py, faint }, k) => overlay.append(
    svg("circle", { class: "measured", cx: px, cy: py, r: 4.2, fill: orderColour(k, measured.length), opacity: faint ? 0.35 : 1 })));
  for (const { px, py } of failed) overlay.append(cross(px, py, 5));
  if (data.best) overlay.append(star(x(data.best.x), y(data.best.y), 10));
  for (const { px, py, faint } of pending) {
    const mark = diamond(px, py, 8);
    if (faint) mark.setAttribute("opacity", 0.45);
    overlay.append(mark);
  }
  const named = pending.filter((mark) => mark.id !== undefined).map((mark) => ({ ...mark, css: "number next-number" }));
  labels(overlay, [...named, ...byImportance(measured), ...failed], box);
}
