// Charts of the progress: epsilon and the shares of the classes against the cost.

import { el, svg } from "./dom.js";
import { axes, plotArea } from "./plot-area.js";
import { extent, scale } from "./scale.js";

export function progressCharts(current) {
  const epsilon = plotArea(null, (area) => drawEpsilon(area, current()), { role: "img" });
  const shares = plotArea(null, (area) => drawShares(area, current()), { role: "img" });
  const node = el("div", { class: "charts" },
    el("div", {}, el("h3", {}, "Accuracy ε against cost"), epsilon.node),
    el("div", {}, el("h3", {}, "Share of the points against cost"), shares.node));
  function redraw() {
    const view = current();
    node.classList.toggle("no-data", !view.history.spent.length);
    epsilon.node.setAttribute("aria-label", describeEpsilon(view.history));
    shares.node.setAttribute("aria-label", describeShares(view));
    epsilon.redraw();
    shares.redraw();
  }
  return { node, redraw };
}

function describeEpsilon({ epsilon, spent }) {
  if (!spent.length) return "No measurements yet";
  if (epsilon.at(-1) === null) return "The accuracy is not known yet";
  return `Epsilon is ${Number(epsilon.at(-1)).toPrecision(3)} after a cost of ${Number(spent.at(-1)).toPrecision(3)}`;
}

function describeShares({ history, points }) {
  if (!history.spent.length) return "No measurements yet";
  return `Of ${points} points ${history.n_above.at(-1)} are above, ${history.n_below.at(-1)} below, ${history.n_potential.at(-1)} undecided`;
}

function writeInMiddle({ overlay, width, height }, text) {
  overlay.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
}

const chartBox = ({ width, height }) => ({ left: 46, top: 8, right: width - 8, bottom: height - 24 });

function drawEpsilon(area, { history }) {
  const rows = history.spent.map((spent, k) => [spent, history.epsilon[k]]).filter(([, epsilon]) => epsilon !== null);
  if (!rows.length) {
    writeInMiddle(area, history.spent.length ? "not known yet" : "no measurements yet");
    return;
  }
  const positive = rows.map(([, epsilon]) => epsilon).filter((epsilon) => epsilon > 0);
  const [low, high] = extent(positive.length ? positive : [0, 1]);
  const log = high / low > 10 && rows.every(([, epsilon]) => epsilon > 0);
  const box = chartBox(area);
  const x = scale(0, rows.at(-1)[0] * 1.02 || 1, box.left, box.right);
  const y = log ? scale(low / 1.1, high * 1.1, box.bottom, box.top, true) : scale(0, high * 1.08, box.bottom, box.top);
  axes(area.overlay, box, x, y, {}, true);
  let path = `M${x(rows[0][0]).toFixed(1)} ${y(rows[0][1]).toFixed(1)}`;
  for (const [spent, epsilon] of rows.slice(1)) path += `H${x(spent).toFixed(1)}V${y(epsilon).toFixed(1)}`;
  area.overlay.append(svg("path", { class: "curve", d: `${path}H${box.right}` }));
}

function drawShares(area, { history, points }) {
  if (!history.spent.length) {
    writeInMiddle(area, "no measurements yet");
    return;
  }
  const box = chartBox(area);
  const x = scale(0, history.spent.at(-1) * 1.02 || 1, box.left, box.right);
  const y = scale(0, 100, box.bottom, box.top);
  const counts = { H: history.n_above, M: history.n_potential, L: history.n_below };
  let lower = { first: 0, shares: history.spent.map(() => 0) };
  for (const letter of ["H", "M", "L"]) {
    const upper = { first: letter === "H" ? 0 : 100, shares: lower.shares.map((share, k) => share + (100 * counts[letter][k]) / points) };
    area.overlay.append(svg("path", { class: `area-${letter}`, d: `M${leftToRight(upper)}${rightToLeft(lower)}Z` }));
    lower = upper;
  }
  axes(area.overlay, box, x, y, { percent: true });

  // `first` is the share before the first measurement, when all points are undecided.
  function leftToRight({ first, shares }) {
    const steps = shares.map((share, k) => `H${x(history.spent[k]).toFixed(1)}V${y(share).toFixed(1)}`);
    return `${box.left} ${y(first)}${steps.join("")}H${box.right}`;
  }
  function rightToLeft({ first, shares }) {
    const steps = shares.map((_, k) => `H${x(history.spent[k]).toFixed(1)}V${y(k ? shares[k - 1] : first).toFixed(1)}`);
    return `V${y(shares.at(-1)).toFixed(1)}${steps.reverse().join("")}H${box.left}`;
  }
}
