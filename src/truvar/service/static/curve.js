// A study on one axis: mean, bounds, threshold and measurements, with the classes as a strip at the foot.

import { classes, order } from "./colour.js";
import { svg } from "./dom.js";
import { axes, plot, star } from "./plot-area.js";
import { edges, extent, scale } from "./scale.js";

export function curve(scene, moved, picked) {
  let [cursor, at] = [null, null];
  const { node, overlay, redraw } = plot(
    (width) => Math.round(Math.max(250, Math.min(0.48 * width, 420))),
    (area) => { at = paint(area, scene()); mark(); },
    { tabindex: "0", role: "application", "aria-roledescription": "curve" },
  );
  function mark() {
    overlay.querySelector(".cursor")?.remove();
    if (cursor !== null) overlay.append(svg("circle", { class: "cursor", cx: at.x[cursor], cy: at.y[cursor], r: 7 }));
  }
  function go(rank) {
    const k = at.ranked[Math.max(0, Math.min(at.ranked.length - 1, rank))];
    if (k === cursor) return;
    cursor = k;
    mark();
    moved(k);
  }
  function nearest(event) {
    const px = event.clientX - node.getBoundingClientRect().left;
    return at.ranked.reduce((best, k, rank) => (Math.abs(at.x[k] - px) < Math.abs(at.x[at.ranked[best]] - px) ? rank : best), 0);
  }
  node.addEventListener("pointermove", (event) => at && go(nearest(event)));
  node.addEventListener("click", (event) => { if (at) { go(nearest(event)); picked(cursor); } });
  node.addEventListener("keydown", (event) => {
    if (!at) return;
    const here = cursor === null ? Math.floor(at.ranked.length / 2) : at.ranked.indexOf(cursor);
    const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: at.ranked.length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      go(to);
    } else if (event.key === "Enter" && cursor !== null) {
      event.preventDefault();
      picked(cursor);
    }
  });
  return { node, redraw: () => { cursor = null; redraw(); }, show() {} };
}

function paint({ context, overlay, width, height }, scene) {
  const box = { left: 56, top: 24, right: width - 14, bottom: height - 40 };
  const [column] = scene.columns;
  const ranked = scene.x.map((_, k) => k).sort((a, b) => scene.x[a] - scene.x[b]);
  const borders = edges(ranked.map((k) => scene.x[k]), column.log);
  const x = scale(column.low, column.high, box.left, box.right, column.log);
  const [low, high] = extent([...scene.lower, ...scene.upper, ...scene.measured.map((spot) => spot.y), scene.threshold ?? scene.mean[0]]);
  const room = 0.08 * (high - low || 1);
  const y = scale(low - 1.6 * room, high + room, box.bottom, box.top);
  const line = (values) => ranked.map((k) => `${x(scene.x[k]).toFixed(1)} ${y(values[k]).toFixed(1)}`);

  axes(overlay, box, x, y, { x: column.label, y: "value" }, true);
  if (scene.lower.every((v) => v !== null) && scene.upper.every((v) => v !== null)) {
    overlay.append(svg("path", { class: "band", d: `M${[...line(scene.upper), ...line(scene.lower).reverse()].join("L")}Z` }));
  }
  if (scene.threshold !== null) {
    overlay.append(svg("line", { class: "level", x1: box.left, x2: box.right, y1: y(scene.threshold), y2: y(scene.threshold) }));
  }
  overlay.append(svg("path", { class: "curve", d: `M${line(scene.mean).join("L")}` }));

  const palette = classes(scene.levelSet);
  ranked.forEach((k, rank) => {
    const [from, to] = [borders[rank], borders[rank + 1]].map((v) => Math.max(box.left, Math.min(box.right, x(v))));
    context.fillStyle = palette[scene.classes[k]];
    context.fillRect(from, box.bottom - 9, to - from + 0.5, 9);
  });

  for (const spot of scene.pending) {
    overlay.append(svg("line", { class: "pendingline", x1: x(spot.x), x2: x(spot.x), y1: box.top, y2: box.bottom }));
  }
  scene.measured.forEach((spot, k) => {
    const sd = Math.sqrt(spot.noise);
    overlay.append(
      svg("line", { class: "error", x1: x(spot.x), x2: x(spot.x), y1: y(spot.y - sd), y2: y(spot.y + sd) }),
      svg("circle", { class: "measured plain", cx: x(spot.x), cy: y(spot.y), r: 4.2, fill: order(k, scene.measured.length) }),
    );
  });
  if (scene.best) overlay.append(star(x(scene.best.x), y(scene.best.y), 10));
  return { x: scene.x.map(x), y: scene.mean.map(y), ranked };
}
