// Three or more columns: each point is a line across the axes, the last one the posterior mean; the colour is its class.

import { inkColour, pointClassColour } from "./colour.js";
import { svg } from "./dom.js";
import { number, position, tickText } from "./format.js";
import { plotArea } from "./plot-area.js";
import { extent, scale } from "./scale.js";
import { classOrder } from "./sides.js";

const MAX_LINES = 400; // of one class
const MIN_HEIGHT = 230; // pixels
const MAX_HEIGHT = 340; // pixels
const ASPECT = 0.4; // height over width

export function parallelCoordinates(current) {
  return plotArea((width) => Math.max(MIN_HEIGHT, Math.min(ASPECT * width, MAX_HEIGHT)), (area) => draw(area, current()), {
    role: "img", "aria-label": "Parallel coordinates: each point of the domain is a line across the axes",
  });
}

function draw({ context, overlay, width, height }, view) {
  const top = 26;
  const bottom = height - 10;
  const left = 14;
  const right = width - 52;
  const names = [...view.columns.map((column) => column.label), "mean"];
  const last = names.length - 1;
  const scales = [
    ...view.columns.map((column) => scale(column.low, column.high, bottom, top, column.log)),
    scale(...extent([...view.mean, view.result.best.mean]), bottom, top),
  ];
  const axisX = (d) => left + (d * (right - left)) / last;
  drawLines(context, view, axisX, scales);
  names.forEach((name, d) => {
    overlay.append(svg("line", { class: "axis", x1: axisX(d), x2: axisX(d), y1: top, y2: bottom }));
    overlay.append(svg("text", { class: "title", x: axisX(d), y: top - 10, "text-anchor": anchor(d, last) }, name));
    for (const tick of scales[d].ticks(4)) {
      overlay.append(svg("text", { class: "halo", x: axisX(d) + 4, y: scales[d](tick) + 4 }, d < last ? tickText(view.columns[d], tick) : number(tick)));
    }
  });

  const path = (point) => view.columns.map((column, d) => `${axisX(d)} ${scales[d](position(column, point[column.name]))}`);
  for (const row of view.measurements) {
    view.columns.forEach((column, d) => overlay.append(
      svg("circle", { class: "measured plain", cx: axisX(d), cy: scales[d](position(column, row.point[column.name])), r: 2.6, fill: inkColour() })));
  }
  for (const suggestion of view.pending) overlay.append(svg("path", { class: "pendingline", d: `M${path(suggestion.point).join("L")}` }));
  if (!view.level_set && view.result.steps) {
    const { best } = view.result;
    const points = [...path(best.point), `${axisX(last)} ${scales[last](best.mean)}`];
    overlay.append(svg("path", { class: "bestline", d: `M${points.join("L")}` }));
  }
}

function drawLines(context, view, axisX, scales) {
  const colour = pointClassColour({ levelSet: view.level_set, sign: view.sign, classes: view.classes, bands: view.bands });
  const counts = { H: 0, M: 0, L: 0 };
  for (const letter of view.classes) counts[letter] += 1;
  context.lineWidth = 1;
  const last = view.level_set ? classOrder(view)[2] : "L";
  for (const letter of view.level_set ? classOrder(view).reverse() : ["L", "H", "M"]) { // the most important class on top
    const every = Math.max(1, Math.ceil(counts[letter] / MAX_LINES));
    context.globalAlpha = letter === last ? 0.3 : 0.55;
    let seen = 0;
    for (let k = 0; k < view.classes.length; k += 1) {
      if (view.classes[k] !== letter) continue;
      seen += 1;
      if ((seen - 1) % every) continue;
      context.strokeStyle = colour(k);
      context.beginPath();
      view.coordinates.forEach((column, d) => context.lineTo(axisX(d), scales[d](column[k])));
      context.lineTo(axisX(view.coordinates.length), scales.at(-1)(view.mean[k]));
      context.stroke();
    }
  }
  context.globalAlpha = 1;
}

// The names of the outer axes stay inside the plot.
function anchor(d, last) {
  if (d === 0) return "start";
  return d === last ? "end" : "middle";
}
