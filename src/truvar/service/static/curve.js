// The plot of a study on one axis: mean, bounds, threshold and measurements, with the classes as a strip at the bottom.

import { orderColour, pointClassColour } from "./colour.js";
import { svg } from "./dom.js";
import { tickText } from "./format.js";
import { thresholdsOf } from "./map.js";
import { axes, byImportance, cross, labels, plotArea, star } from "./plot-area.js";
import { edges, extent, scale } from "./scale.js";

const MIN_HEIGHT = 250; // pixels
const MAX_HEIGHT = 420; // pixels
const ASPECT = 0.48; // height over width
const STRIP = 9; // pixels, height of the classes

// The arguments are those of `map`.
export function curve(getData, onMove, onPick) {
  let cursor = null; // index of the point under the cursor
  let pixels = null; // {x, y, order}: positions of the points, and their indices from left to right
  const { node, overlay, redraw } = plotArea(
    (width) => Math.round(Math.max(MIN_HEIGHT, Math.min(ASPECT * width, MAX_HEIGHT))),
    (area) => { pixels = draw(area, getData()); drawCursor(); },
    { tabindex: "0", role: "application", "aria-roledescription": "curve" },
  );
  function drawCursor() {
    overlay.querySelector(".cursor")?.remove();
    if (cursor !== null) overlay.append(svg("circle", { class: "cursor", cx: pixels.x[cursor], cy: pixels.y[cursor], r: 7 }));
  }
  function moveTo(rank) {
    const k = pixels.order[Math.max(0, Math.min(pixels.order.length - 1, rank))];
    if (k === cursor) return;
    cursor = k;
    drawCursor();
    onMove(k);
  }
  function nearestRank(event) {
    const px = event.clientX - node.getBoundingClientRect().left;
    const distance = (rank) => Math.abs(pixels.x[pixels.order[rank]] - px);
    return pixels.order.reduce((best, _, rank) => (distance(rank) < distance(best) ? rank : best), 0);
  }
  node.addEventListener("pointermove", (event) => pixels && moveTo(nearestRank(event)));
  node.addEventListener("click", (event) => { if (pixels) { moveTo(nearestRank(event)); onPick(cursor); } });
  node.addEventListener("keydown", (event) => {
    if (!pixels) return;
    const last = pixels.order.length - 1;
    const rank = cursor === null ? Math.floor((last + 1) / 2) : pixels.order.indexOf(cursor);
    const target = { ArrowLeft: rank - 1, ArrowRight: rank + 1, Home: 0, End: last }[event.key];
    if (target !== undefined) {
      event.preventDefault();
      moveTo(target);
    } else if (event.key === "Enter" && cursor !== null) {
      event.preventDefault();
      onPick(cursor);
    }
  });
  return { node, redraw: () => { cursor = null; redraw(); }, setLayer() {} };
}

function draw({ context, overlay, width, height }, data) {
  const box = { left: 56, top: 24, right: width - 14, bottom: height - 40 };
  const [column] = data.columns;
  const order = data.x.map((_, k) => k).sort((a, b) => data.x[a] - data.x[b]);
  const x = scale(column.low, column.high, box.left, box.right, column.log);
  x.label = (tick) => tickText(column, tick);
  const [low, high] = extent([...data.lower, ...data.upper, ...data.measured.map((mark) => mark.y), ...thresholdsOf(data), data.mean[0]]);
  const margin = 0.08 * (high - low || 1);
  const y = scale(low - 1.6 * margin, high + margin, box.bottom, box.top);
  const line = (values) => order.map((k) => `${x(data.x[k]).toFixed(1)} ${y(values[k]).toFixed(1)}`);

  axes(overlay, box, x, y, { x: column.label, y: data.quantity ?? "value" }, true);
  if (![...data.lower, ...data.upper].includes(null)) {
    overlay.append(svg("path", { class: "band", d: `M${[...line(data.upper), ...line(data.lower).reverse()].join("L")}Z` }));
  }
  for (const threshold of thresholdsOf(data)) {
    overlay.append(svg("line", { class: "level", x1: box.left, x2: box.right, y1: y(threshold), y2: y(threshold) }));
  }
  overlay.append(svg("path", { class: "curve", d: `M${line(data.mean).join("L")}` }));

  const colour = pointClassColour(data);
  const excluded = new Set(data.excluded ?? []);
  const borders = edges(order.map((k) => data.x[k]), column.log);
  const inBox = (value) => Math.max(box.left, Math.min(box.right, x(value)));
  order.forEach((k, rank) => {
    const left = inBox(borders[rank]);
    const right = inBox(borders[rank + 1]);
    if (excluded.has(k)) {
      context.fillStyle = "#8888883d";
      context.fillRect(left, box.top, right - left + 0.5, box.bottom - box.top);
    }
    context.fillStyle = colour(k);
    context.fillRect(left, box.bottom - STRIP, right - left + 0.5, STRIP);
  });

  for (const mark of data.pending) {
    overlay.append(svg("line", { class: "pendingline", x1: x(mark.x), x2: x(mark.x), y1: box.top, y2: box.bottom }));
  }
  data.measured.forEach((mark, k) => {
    const sd = Math.sqrt(mark.noise);
    overlay.append(
      svg("line", { class: "error", x1: x(mark.x), x2: x(mark.x), y1: y(mark.y - sd), y2: y(mark.y + sd) }),
      svg("circle", { class: "measured plain", cx: x(mark.x), cy: y(mark.y), r: 4.2, fill: orderColour(k, data.measured.length) }),
    );
  });
  for (const mark of data.failed ?? []) overlay.append(cross(x(mark.x), box.bottom - STRIP - 8, 5));
  labels(overlay, byImportance(data.measured.map((mark) => ({ id: mark.id, px: x(mark.x), py: y(mark.y) }))), box);
  if (data.best) overlay.append(star(x(data.best.x), y(data.best.y), 10));
  return { x: data.x.map(x), y: data.mean.map(y), order };
}
