// Charts of the progress against the cost: the measured values, and the points undecided by the paper's bounds.

import { el, svg } from "./dom.js";
import { number } from "./format.js";
import { axes, plotArea } from "./plot-area.js";
import { extent, scale } from "./scale.js";

export function progressCharts(current) {
  const values = plotArea(null, (area) => drawValues(area, current()), { role: "img" });
  const undecided = plotArea(null, (area) => drawUndecided(area, current()), { role: "img" });
  const title = el("h3", {});
  const node = el("div", { class: "charts" },
    el("div", {}, title, values.node),
    el("div", {}, el("h3", {}, "Points undecided by the paper's bounds against cost"), undecided.node));
  function redraw() {
    const view = current();
    node.classList.toggle("no-data", !view.history.spent.length);
    title.textContent = view.level_set ? "Measured values against cost; line: threshold" : "Measured values against cost; line: best so far";
    values.node.setAttribute("aria-label", describeValues(view));
    undecided.node.setAttribute("aria-label", describeUndecided(view));
    values.redraw();
    undecided.redraw();
  }
  return { node, redraw };
}

// [spent, value] of the measurements of the target that the model does not leave out.
function targetValues({ measurements, result, tasks }) {
  return measurements
    .filter((row) => !result.outliers.includes(row.id) && (!tasks || row.task === tasks[0]))
    .map((row) => [row.spent, row.value]);
}

function describeValues(view) {
  const rows = targetValues(view);
  if (!rows.length) return "No measurements yet";
  const [low, high] = extent(rows.map(([, value]) => value));
  return `${rows.length} measured values between ${number(low)} and ${number(high)}, for a cost of ${number(rows.at(-1)[0])}`;
}

function describeUndecided({ history, points }) {
  if (!history.spent.length) return "No measurements yet";
  return `The paper's bounds leave ${history.n_potential.at(-1)} of ${points} points undecided`;
}

function writeInMiddle({ overlay, width, height }, text) {
  overlay.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
}

const chartBox = ({ width, height }) => ({ left: 46, top: 8, right: width - 8, bottom: height - 24 });

function drawValues(area, view) {
  const rows = targetValues(view);
  if (!rows.length) {
    writeInMiddle(area, "no measurements yet");
    return;
  }
  const shown = rows.map(([, value]) => value);
  if (view.threshold !== null) shown.push(view.threshold);
  const [low, high] = extent(shown);
  const margin = 0.08 * (high - low || 1);
  const box = chartBox(area);
  const x = scale(0, rows.at(-1)[0] * 1.02 || 1, box.left, box.right);
  const y = scale(low - margin, high + margin, box.bottom, box.top);
  axes(area.overlay, box, x, y, {}, true);
  if (view.threshold !== null) {
    area.overlay.append(svg("line", { class: "level", x1: box.left, x2: box.right, y1: y(view.threshold), y2: y(view.threshold) }));
  }
  for (const [spent, value] of rows) {
    area.overlay.append(svg("circle", { class: "measured plain", cx: x(spent), cy: y(value), r: 2.6, fill: "#888" }));
  }
  if (view.level_set) return;
  let [, best] = rows[0];
  let path = `M${x(rows[0][0]).toFixed(1)} ${y(best).toFixed(1)}`;
  for (const [spent, value] of rows.slice(1)) {
    if (view.sign * value > view.sign * best) best = value;
    path += `H${x(spent).toFixed(1)}V${y(best).toFixed(1)}`;
  }
  area.overlay.append(svg("path", { class: "curve", d: `${path}H${box.right}` }));
}

function drawUndecided(area, { history, points }) {
  if (!history.spent.length) {
    writeInMiddle(area, "no measurements yet");
    return;
  }
  const box = chartBox(area);
  const x = scale(0, history.spent.at(-1) * 1.02 || 1, box.left, box.right);
  const y = scale(0, 100, box.bottom, box.top);
  const shares = history.n_potential.map((n) => (100 * n) / points);
  const steps = shares.map((value, k) => `H${x(history.spent[k]).toFixed(1)}V${y(value).toFixed(1)}`);
  const line = `${box.left} ${y(100)}${steps.join("")}H${box.right}`; // before the first measurement all are undecided
  area.overlay.append(svg("path", { class: "band", d: `M${line}V${box.bottom}H${box.left}Z` }), svg("path", { class: "curve", d: `M${line}` }));
  axes(area.overlay, box, x, y, { percent: true });
}
