// Three or more dimensions: every point is a line across the axes, the last one the posterior mean, coloured by class.

import { classes, ink } from "./colour.js";
import { svg } from "./dom.js";
import { number } from "./format.js";
import { plot } from "./plot-area.js";
import { extent, scale } from "./scale.js";

const MANY = 400; // lines of one class

export function parallel(view) {
  return plot((width) => Math.max(230, Math.min(0.4 * width, 340)), (area) => paint(area, view()), {
    role: "img", "aria-label": "Parallel coordinates: every point of the domain is a line across the axes",
  });
}

function paint({ context, overlay, width, height }, view) {
  const [top, bottom, left, right] = [26, height - 10, 14, width - 52];
  const names = [...view.columns.map((column) => column.label), "mean"];
  const span = extent([...view.mean, view.result.best.mean]);
  const scales = [
    ...view.columns.map((column) => scale(column.low, column.high, bottom, top, column.log)),
    scale(...span, bottom, top),
  ];
  const at = (k) => left + (k * (right - left)) / (names.length - 1);
  const palette = classes(view.level_set);
  const count = { H: 0, M: 0, L: 0 };
  for (const letter of view.classes) count[letter] += 1;
  context.lineWidth = 1;
  for (const letter of view.level_set ? ["L", "M", "H"] : ["L", "H", "M"]) {
    const every = Math.max(1, Math.ceil(count[letter] / MANY));
    context.strokeStyle = palette[letter];
    context.globalAlpha = letter === "L" ? 0.3 : 0.55;
    for (let k = 0, seen = 0; k < view.classes.length; k += 1) {
      if (view.classes[k] !== letter || seen++ % every) continue;
      context.beginPath();
      view.places.forEach((column, d) => context.lineTo(at(d), scales[d](column[k])));
      context.lineTo(at(names.length - 1), scales.at(-1)(view.mean[k]));
      context.stroke();
    }
  }
  context.globalAlpha = 1;
  names.forEach((name, d) => {
    overlay.append(svg("line", { class: "axis", x1: at(d), x2: at(d), y1: top, y2: bottom }));
    overlay.append(svg("text", { class: "title", x: at(d), y: top - 10, "text-anchor": d ? (d === names.length - 1 ? "end" : "middle") : "start" }, name));
    for (const tick of scales[d].ticks(4)) {
      overlay.append(svg("text", { x: at(d) + 4, y: scales[d](tick) + 4 }, number(tick)));
    }
  });
  const path = (point, mean) => [...view.columns.map((column, d) => `${at(d)} ${scales[d](point[column.name])}`),
    ...(mean === undefined ? [] : [`${at(names.length - 1)} ${scales.at(-1)(mean)}`])];
  for (const row of view.measurements) {
    view.columns.forEach((column, d) => overlay.append(
      svg("circle", { class: "measured plain", cx: at(d), cy: scales[d](row.point[column.name]), r: 2.6, fill: ink() })));
  }
  for (const suggestion of view.pending) overlay.append(svg("path", { class: "pendingline", d: `M${path(suggestion.point).join("L")}`, fill: "none" }));
  if (!view.level_set && view.result.steps) {
    overlay.append(svg("path", { class: "bestline", d: `M${path(view.result.best.point, view.result.best.mean).join("L")}` }));
  }
}
