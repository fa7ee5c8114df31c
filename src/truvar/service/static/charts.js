// Charts of the analysis: values and score against cost or steps, curves along a column, bars, and the model check.
// `get()` of each returns its data, or null as long as there are none.

import { el, svg } from "./dom.js";
import { number, tickText } from "./format.js";
import { axes, byImportance, labels, plotArea } from "./plot-area.js";
import { extent, scale } from "./scale.js";

const chartBox = ({ width, height }) => ({ left: 50, top: 12, right: width - 10, bottom: height - 40 });
const path = (points) => points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");

function writeInMiddle({ overlay, width, height }, text) {
  overlay.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
}

// An area with a title above it; `draw(area, data)` and `describe(data)` get the data, `empty` is shown without.
function chart(title, get, draw, describe, empty, css = "") {
  const heading = el("h3", {});
  const area = plotArea(null, (drawing) => {
    const data = get();
    if (data) draw(drawing, data);
    else writeInMiddle(drawing, empty);
  }, { role: "img" });
  const node = el("div", { class: css }, heading, area.node);
  function redraw() {
    const data = get();
    heading.textContent = title(data);
    area.node.setAttribute("aria-label", data ? describe(data) : empty);
    area.redraw();
  }
  return { node, redraw };
}

function drawThresholds(overlay, box, y, thresholds) {
  for (const threshold of thresholds) overlay.append(svg("line", { class: "level", x1: box.left, x2: box.right, y1: y(threshold), y2: y(threshold) }));
}

// Data: rows [{at, value, best, id}], axis: label of the horizontal axis, thresholds, optimum: whether there is a best.
// `quantity` is what is measured, with its unit, or null.
export function valuesChart(get, quantity) {
  const title = (data) => (data?.optimum ? `Best ${quantity ?? "value"} so far` : `Measured ${quantity ?? "values"}`);
  return chart(title, get, (area, { rows, axis, thresholds, optimum }) => {
    const [low, high] = extent([...rows.map((row) => row.value), ...thresholds]);
    const margin = 0.08 * (high - low || 1);
    const box = chartBox(area);
    const x = scale(0, rows.at(-1).at * 1.02 || 1, box.left, box.right);
    const y = scale(low - margin, high + margin, box.bottom, box.top);
    axes(area.overlay, box, x, y, { x: axis }, true);
    drawThresholds(area.overlay, box, y, thresholds);
    if (optimum) {
      const [first, ...others] = rows;
      const steps = others.map((row) => `H${x(row.at).toFixed(1)}V${y(row.best).toFixed(1)}`).join("");
      area.overlay.append(svg("path", { class: "curve", d: `M${x(first.at).toFixed(1)} ${y(first.best).toFixed(1)}${steps}H${box.right}` }));
    }
    for (const row of rows) area.overlay.append(svg("circle", { class: "measured plain", cx: x(row.at), cy: y(row.value), r: 2.8, fill: "#888" }));
  }, ({ rows }) => {
    const [low, high] = extent(rows.map((row) => row.value));
    return `${rows.length} measured values between ${number(low)} and ${number(high)}`;
  }, "no measurements yet");
}

// Data: rows [{at, mean, low, high}], axis, name: "Expected F1", goal or null, end: the top of the axis or null.
export function scoreChart(get) {
  return chart((data) => (data ? `${data.name}, with its 95 % interval` : "Expected score"), get, (area, { rows, axis, goal, end }) => {
    const box = chartBox(area);
    const top = end ?? 1.05 * Math.max(...rows.map((row) => row.high ?? row.mean), goal ?? 0);
    const x = scale(0, rows.at(-1).at * 1.02 || 1, box.left, box.right);
    const y = scale(0, top || 1, box.bottom, box.top);
    axes(area.overlay, box, x, y, { x: axis }, true);
    const upper = rows.map((row) => [x(row.at), y(Math.min(row.high ?? top, top))]);
    const lower = rows.map((row) => [x(row.at), y(row.low)]);
    area.overlay.append(svg("path", { class: "band", d: `M${path([...upper, ...lower.reverse()])}Z` }));
    area.overlay.append(svg("path", { class: "curve", d: `M${path(rows.map((row) => [x(row.at), y(row.mean)]))}` }));
    for (const row of rows) area.overlay.append(svg("circle", { class: "dot", cx: x(row.at), cy: y(row.mean), r: 3 }));
    if (goal !== null) {
      area.overlay.append(svg("line", { class: "level", x1: box.left, x2: box.right, y1: y(goal), y2: y(goal) }));
      const beside = y(goal) - 16 < box.top ? y(goal) + 14 : y(goal) - 5;
      area.overlay.append(svg("text", { class: "halo", x: box.right - 4, y: beside, "text-anchor": "end" }, `goal ${number(goal)}`));
    }
  }, ({ name, rows, goal }) => {
    const last = rows.at(-1);
    return `${name} ${number(last.mean, 3)}, 95 % between ${number(last.low, 3)} and ${number(last.high, 3)}${goal === null ? "" : `, goal ${number(goal)}`}`;
  }, "not known yet");
}

// Data: column (as the view has it), x[], mean[], low[], high[], at, thresholds, range [low, high] of all curves.
export function profileChart(get) {
  return chart((data) => data?.column.label ?? "", get, (area, data) => {
    const box = chartBox(area);
    const { column } = data;
    const half = column.choices ? 0.5 : 0; // names lie inside the axis
    const x = scale(column.low - half, column.high + half, box.left, box.right, column.log);
    x.label = (tick) => tickText(column, tick);
    const y = scale(...data.range, box.bottom, box.top);
    axes(area.overlay, box, x, y, { x: column.label }, true);
    const line = (values) => data.x.map((at, k) => [x(at), y(values[k])]);
    if (column.choices) {
      for (const [k, at] of data.x.entries()) {
        area.overlay.append(svg("line", { class: "interval-line", x1: x(at), x2: x(at), y1: y(data.low[k]), y2: y(data.high[k]) }));
        area.overlay.append(svg("circle", { class: "dot", cx: x(at), cy: y(data.mean[k]), r: 4 }));
      }
    } else {
      area.overlay.append(svg("path", { class: "band", d: `M${path([...line(data.high), ...line(data.low).reverse()])}Z` }));
      area.overlay.append(svg("path", { class: "curve", d: `M${path(line(data.mean))}` }));
    }
    drawThresholds(area.overlay, box, y, data.thresholds);
    area.overlay.append(svg("line", { class: "held", x1: x(data.at), x2: x(data.at), y1: box.top, y2: box.bottom }));
  }, (data) => {
    const [low, high] = extent(data.mean);
    return `Along ${data.column.label} the estimate ranges from ${number(low)} to ${number(high)}`;
  }, "no model yet");
}

// Data: [{label, first, total}], the most important first.
export function importanceBars(get) {
  const node = el("div", { class: "bars" });
  function redraw() {
    const rows = get() ?? [];
    const percent = (value) => (value < 0.005 ? "< 1 %" : `${Math.round(100 * value)} %`);
    node.replaceChildren(...rows.map(({ label, first, total }) => el("div", { class: "bar-row" },
      el("span", { class: "bar-label" }, label),
      svg("svg", { class: "bar", viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: "track", x: 0, y: 1, width: 100, height: 10 }), svg("rect", { class: "total", x: 0, y: 1, width: 100 * total, height: 10 }),
        svg("rect", { class: "first", x: 0, y: 1, width: 100 * Math.min(first, total), height: 10 })),
      el("span", { class: "bar-value" }, `${percent(total)}, alone ${percent(Math.min(first, total))}`))));
  }
  return { node, redraw };
}

// Data: ids[], values[], means[], sds[], limit. Every value against what the others predict.
export function checkChart(get, quantity) {
  return chart(() => `Measured ${quantity ?? "value"} against what the others predict, with 95 % intervals`, get, (area, { ids, values, means, sds, z_scores: z, limit }) => {
    const box = chartBox(area);
    const known = ids.map((_, k) => k).filter((k) => sds[k] !== null);
    const [low, high] = extent(known.flatMap((k) => [values[k], means[k] - 2 * sds[k], means[k] + 2 * sds[k]]));
    const margin = 0.05 * (high - low || 1);
    const x = scale(low - margin, high + margin, box.left, box.right);
    const y = scale(low - margin, high + margin, box.bottom, box.top);
    axes(area.overlay, box, x, y, { x: "predicted" }, true);
    area.overlay.append(svg("line", { class: "level", x1: x(low), x2: x(high), y1: y(low), y2: y(high) }));
    const far = [];
    for (const k of known) {
      const outlying = limit !== null && Math.abs(z[k]) > limit;
      area.overlay.append(svg("line", { class: "error", x1: x(means[k] - 1.96 * sds[k]), x2: x(means[k] + 1.96 * sds[k]), y1: y(values[k]), y2: y(values[k]) }));
      area.overlay.append(svg("circle", { class: outlying ? "outlying" : "dot", cx: x(means[k]), cy: y(values[k]), r: 3.4 }));
      if (outlying || Math.abs(z[k]) > 1.96) far.push({ id: ids[k], px: x(means[k]), py: y(values[k]) });
    }
    labels(area.overlay, byImportance(far), box);
  }, ({ ids }) => `${ids.length} measured values against what the others predict`, "no measurements yet", "wide");
}
