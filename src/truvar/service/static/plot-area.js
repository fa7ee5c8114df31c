// A drawing area: a canvas for many shapes and an SVG above it for few; both are redrawn when the width changes.

import { el, replace, svg } from "./dom.js";
import { number } from "./format.js";

// `heightFor(width)` returns the height in pixels; null: the style sheet sets it. `draw({context, overlay, width,
// height})` fills the canvas context and the SVG overlay.
export function plotArea(heightFor, draw, attributes = {}) {
  const canvas = el("canvas", { "aria-hidden": "true" });
  const overlay = svg("svg", { "aria-hidden": "true" });
  const node = el("div", { class: "plot", ...attributes }, canvas, overlay);
  let drawnWidth = 0;
  const redraw = () => {
    const width = node.clientWidth;
    if (!width) return;
    const height = heightFor ? heightFor(width) : node.clientHeight;
    if (heightFor) node.style.height = `${height}px`;
    const pixelRatio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * pixelRatio);
    canvas.height = Math.round(height * pixelRatio);
    const context = canvas.getContext("2d");
    context.scale(pixelRatio, pixelRatio);
    overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    replace(overlay);
    draw({ context, overlay, width, height });
  };
  new ResizeObserver(() => {
    if (node.clientWidth === drawnWidth) return;
    drawnWidth = node.clientWidth;
    redraw();
  }).observe(node);
  return { node, overlay, redraw };
}

// The two axes of a box {left, top, right, bottom}, with scales x and y; labels: {x, y, percent}.
export function axes(overlay, box, x, y, labels, grid = false) {
  const { left, top, right, bottom } = box;
  for (const tick of x.ticks(Math.max(2, Math.floor((right - left) / 80)))) {
    if (grid) overlay.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: top, y2: bottom }));
    overlay.append(svg("line", { class: "axis", x1: x(tick), x2: x(tick), y1: bottom, y2: bottom + 4 }));
    overlay.append(svg("text", { x: x(tick), y: bottom + 16, "text-anchor": "middle" }, x.label ? x.label(tick) : number(tick)));
  }
  const yLabel = y.label ?? number;
  for (const tick of y.ticks(Math.max(2, Math.floor((bottom - top) / 45)))) {
    if (grid) overlay.append(svg("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }));
    overlay.append(svg("line", { class: "axis", x1: left - 4, x2: left, y1: y(tick), y2: y(tick) }));
    overlay.append(svg("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, labels.percent ? `${tick} %` : yLabel(tick)));
  }
  overlay.append(svg("rect", { class: "axis", x: left, y: top, width: right - left, height: bottom - top }));
  if (labels.x) overlay.append(svg("text", { class: "title", x: (left + right) / 2, y: bottom + 33, "text-anchor": "middle" }, labels.x));
  if (labels.y) overlay.append(svg("text", { class: "title", x: left, y: top - 8, "text-anchor": "start" }, labels.y));
}

// The mark of a pending suggestion.
export const diamond = (x, y, r) => svg("path", { class: "pending", d: `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z` });

// The mark of the best point.
export function star(x, y, r) {
  const corners = Array.from({ length: 10 }, (_, k) => {
    const radius = k % 2 ? 0.45 * r : r;
    const angle = (k * Math.PI) / 5 - Math.PI / 2;
    return `${x + radius * Math.cos(angle)} ${y + radius * Math.sin(angle)}`;
  });
  return svg("path", { class: "best", d: `M${corners.join("L")}Z` });
}

// The mark of a measurement that failed.
export const cross = (x, y, r) => svg("path", { class: "failed", d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` });

const LETTER_WIDTH = 7; // pixels
const LETTER_HEIGHT = 13; // pixels

// Ids beside marks [{px, py, id}], the first of the list first: those that would cover another are left out.
export function labels(overlay, marks, box) {
  const placed = [];
  for (const { px, py, id, css } of marks) {
    const width = LETTER_WIDTH * String(id).length + 3;
    const below = py - 20 < box.top;
    const y = below ? py + 17 : py - 8;
    const x = Math.max(box.left + width / 2, Math.min(box.right - width / 2, px));
    if (placed.some((other) => Math.abs(other.x - x) < (other.width + width) / 2 && Math.abs(other.y - y) < LETTER_HEIGHT)) continue;
    placed.push({ x, y, width });
    overlay.append(svg("text", { class: css ?? "number", x, y, "text-anchor": "middle" }, String(id)));
  }
}

// The last and the first mark, then the others from the newest on: the order in which they get their ids.
export function byImportance(marks) {
  const [first, ...others] = marks;
  const newest = others.reverse();
  return marks.length > 1 ? [newest[0], first, ...newest.slice(1)] : marks;
}
