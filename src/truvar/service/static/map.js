// The map of a plane: cells or dots coloured by mean, uncertainty or class; the contour at h, the route, what is suggested.

import { classes, order, shade } from "./colour.js";
import { contour } from "./contour.js";
import { svg } from "./dom.js";
import { axes, diamond, plot, star } from "./plot-area.js";
import { distinct, edges, extent, scale } from "./scale.js";

const NUMBERED = 30; // measurements up to which each has its number

// `scene()` gives what to draw: columns [x, y], x[], y[], mean[], sd[], classes or null, threshold, levelSet, travels,
// measured [{x, y, faint}], pending [{x, y}], best {x, y} or null. `moved(k)` and `picked(k)` get the index of a point.
export function map(scene, moved, picked) {
  let [cursor, layer, at] = [null, "mean", null];
  const { node, overlay, redraw } = plot(
    (width) => Math.round(Math.max(250, Math.min(0.52 * width, 460))),
    (area) => {
      const shown = scene();
      at = shown && paint(area, shown, layer);
      if (at) mark();
    },
    { tabindex: "0", role: "application", "aria-roledescription": "map" },
  );

  function mark() {
    overlay.querySelector(".cursor")?.remove();
    if (cursor === null || cursor >= at.x.length) return;
    overlay.append(svg("circle", { class: "cursor", cx: at.x[cursor], cy: at.y[cursor], r: 8 }));
  }

  function go(k) {
    if (k === null || k === cursor) return;
    cursor = k;
    mark();
    moved(k);
  }

  function nearest(event) {
    const box = node.getBoundingClientRect();
    const [px, py] = [event.clientX - box.left, event.clientY - box.top];
    let [best, found] = [Infinity, null];
    for (let k = 0; k < at.x.length; k += 1) {
      const distance = (at.x[k] - px) ** 2 + (at.y[k] - py) ** 2;
      if (distance < best) [best, found] = [distance, k];
    }
    return found;
  }

  // The next point in a direction: the nearest within 45 degrees of it.
  function beside(dx, dy) {
    if (cursor === null) return Math.floor(at.x.length / 2);
    let [best, found] = [Infinity, cursor];
    for (let k = 0; k < at.x.length; k += 1) {
      const [x, y] = [at.x[k] - at.x[cursor], at.y[k] - at.y[cursor]];
      const [along, aside] = [x * dx + y * dy, Math.abs(x * dy) + Math.abs(y * dx)];
      if (along > 0.01 && aside <= along + 0.01 && along + 2 * aside < best) [best, found] = [along + 2 * aside, k];
    }
    return found;
  }

  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  node.addEventListener("pointermove", (event) => at && event.pointerType !== "touch" && go(nearest(event)));
  node.addEventListener("click", (event) => { if (at) { go(nearest(event)); picked(cursor); } });
  node.addEventListener("keydown", (event) => {
    if (!at) return;
    if (arrows[event.key]) {
      event.preventDefault();
      go(beside(...arrows[event.key]));
    } else if (event.key === "Enter" && cursor !== null) {
      event.preventDefault();
      picked(cursor);
    }
  });
  return { node, redraw: () => { cursor = null; redraw(); }, show(name) { layer = name; redraw(); } };
}

function paint({ context, overlay, width, height }, scene, layer) {
  const box = { left: 52, top: 24, right: width - 12, bottom: height - 40 };
  const [cx, cy] = scene.columns;
  const [xs, ys] = [distinct(scene.x), distinct(scene.y)];
  const gridded = xs.length * ys.length === scene.x.length && xs.length > 1 && ys.length > 1;
  const around = (column, values) => (gridded ? edges(values, column.log) : padded(column));
  const [ex, ey] = [around(cx, xs), around(cy, ys)];
  const x = scale(ex[0], ex.at(-1), box.left, box.right, cx.log);
  const y = scale(ey[0], ey.at(-1), box.bottom, box.top, cy.log);
  const [px, py] = [scene.x.map(x), scene.y.map(y)];

  const colour = colours(scene, layer);
  if (gridded) {
    const [columnOf, rowOf] = [new Map(xs.map((v, i) => [v, i])), new Map(ys.map((v, j) => [v, j]))];
    const where = new Int32Array(xs.length * ys.length);
    for (let k = 0; k < scene.x.length; k += 1) {
      const [i, j] = [columnOf.get(scene.x[k]), rowOf.get(scene.y[k])];
      where[i * ys.length + j] = k;
      const [x0, x1, y0, y1] = [x(ex[i]), x(ex[i + 1]), y(ey[j + 1]), y(ey[j])].map(Math.round);
      context.fillStyle = colour(k);
      context.fillRect(x0, y0, x1 - x0, y1 - y0);
    }
    if (scene.threshold !== null) {
      const d = contour(xs, ys, (i, j) => scene.mean[where[i * ys.length + j]], scene.threshold, x, y);
      if (d) overlay.append(svg("path", { class: "contour under", d }), svg("path", { class: "contour", d }));
    }
  } else {
    if (scene.plane) under(context, overlay, scene, layer, x, y, box);
    const size = Math.max(3, Math.min(14, Math.sqrt((0.55 * (box.right - box.left) * (box.bottom - box.top)) / scene.x.length)));
    for (let k = 0; k < px.length; k += 1) {
      context.fillStyle = colour(k);
      context.fillRect(px[k] - size / 2, py[k] - size / 2, size, size);
      if (scene.plane) {
        context.strokeStyle = "#00000055";
        context.strokeRect(px[k] - size / 2, py[k] - size / 2, size, size);
      }
    }
  }
  axes(overlay, box, x, y, { x: cx.label, y: cy.label });
  marks(overlay, scene, x, y);
  return { x: px, y: py };
}

// Between scattered points the posterior shows through, paler, with the contour.
function under(context, overlay, scene, layer, x, y, box) {
  const { plane } = scene;
  if (layer !== "classes") {
    const colour = colours(scene, layer, plane);
    const [ex, ey] = [edges(plane.x, scene.columns[0].log), edges(plane.y, scene.columns[1].log)];
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.right - box.left, box.bottom - box.top);
    context.clip();
    context.globalAlpha = 0.55;
    plane.x.forEach((_, i) => plane.y.forEach((__, j) => {
      const [x0, x1, y0, y1] = [x(ex[i]), x(ex[i + 1]), y(ey[j + 1]), y(ey[j])].map(Math.round);
      context.fillStyle = colour(i * plane.y.length + j);
      context.fillRect(x0, y0, x1 - x0, y1 - y0);
    }));
    context.restore();
  }
  if (scene.threshold === null) return;
  const d = contour(plane.x, plane.y, (i, j) => plane.mean[i * plane.y.length + j], scene.threshold, x, y);
  if (d) overlay.append(svg("path", { class: "contour under", d }), svg("path", { class: "contour", d }));
}

function padded(column) {
  if (column.log) return [column.low / 1.15, column.high * 1.15];
  const margin = 0.03 * (column.high - column.low || 1);
  return [column.low - margin, column.high + margin];
}

function colours(scene, layer, of = scene) {
  if (layer === "classes" && scene.classes) {
    const palette = classes(scene.levelSet);
    return (k) => palette[scene.classes[k]];
  }
  const values = layer === "sd" ? scene.sd : scene.mean;
  const [low, high] = layer === "sd" ? [0, extent(values)[1]] : extent(values);
  const shown = layer === "sd" ? of.sd : of.mean;
  return (k) => shade(layer === "sd" ? "sd" : "mean", shown[k], low, high);
}

function marks(overlay, scene, x, y) {
  const spots = scene.measured.map((spot) => ({ ...spot, px: x(spot.x), py: y(spot.y) }));
  if (scene.travels && spots.length > 1) {
    overlay.append(svg("path", { class: "route", d: `M${spots.map((s) => `${s.px.toFixed(1)} ${s.py.toFixed(1)}`).join("L")}` }));
  }
  spots.forEach((spot, k) => overlay.append(
    svg("circle", { class: "measured", cx: spot.px, cy: spot.py, r: 4.2, fill: order(k, spots.length), opacity: spot.faint ? 0.35 : 1 })));
  const taken = [];
  const ends = spots.map((_, k) => k).sort((a, b) => (a > 0 && a < spots.length - 1) - (b > 0 && b < spots.length - 1) || a - b);
  for (const k of spots.length <= NUMBERED ? ends : ends.slice(0, 2)) {
    const spot = spots[k];
    if (taken.some((other) => Math.abs(other.px - spot.px) < 20 && Math.abs(other.py - spot.py) < 14)) continue;
    taken.push(spot);
    overlay.append(svg("text", { class: "number", x: spot.px, y: spot.py < 44 ? spot.py + 17 : spot.py - 8, "text-anchor": "middle" }, `${k + 1}`));
  }
  if (scene.best) overlay.append(star(x(scene.best.x), y(scene.best.y), 10));
  for (const spot of scene.pending) overlay.append(diamond(x(spot.x), y(spot.y), 8));
}
