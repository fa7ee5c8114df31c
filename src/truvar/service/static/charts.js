// How it went: epsilon and the shares of the classes against the cost.

import { el, svg } from "./dom.js";
import { axes, plot } from "./plot-area.js";
import { extent, scale } from "./scale.js";

export function charts(view) {
  const epsilon = plot(null, (area) => paintEpsilon(area, view()), { role: "img" });
  const shares = plot(null, (area) => paintShares(area, view()), { role: "img" });
  const node = el("div", { class: "charts" },
    el("div", {}, el("h3", {}, "How far from exact (ε), against cost"), epsilon.node),
    el("div", {}, el("h3", {}, "Share of the points, against cost"), shares.node));
  return {
    node,
    redraw() {
      const { history } = view();
      const last = history.spent.length - 1;
      node.classList.toggle("none", last < 0);
      const now = (name) => Number(history[name][last]).toPrecision(3);
      epsilon.node.setAttribute("aria-label", last < 0 ? "Nothing measured yet" :
        history.epsilon[last] === null ? "No claim about the accuracy yet" : `Epsilon is ${now("epsilon")} after a cost of ${now("spent")}`);
      shares.node.setAttribute("aria-label", last < 0 ? "Nothing measured yet" :
        `Of ${view().points} points ${history.n_above[last]} are above, ${history.n_below[last]} below, ${history.n_potential[last]} open`);
      epsilon.redraw();
      shares.redraw();
    },
  };
}

function nothing(overlay, width, height, text) {
  overlay.append(svg("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, text));
}

function paintEpsilon({ overlay, width, height }, { history }) {
  const rows = history.spent.map((spent, k) => [spent, history.epsilon[k]]).filter(([, value]) => value !== null);
  if (!rows.length) return nothing(overlay, width, height, history.spent.length ? "no claim yet" : "nothing measured yet");
  const positive = rows.map(([, value]) => value).filter((value) => value > 0);
  const [low, high] = extent(positive.length ? positive : [0, 1]);
  const log = high / low > 10 && rows.every(([, value]) => value > 0);
  const box = { left: 46, top: 8, right: width - 8, bottom: height - 24 };
  const end = rows.at(-1)[0] * 1.02 || 1;
  const x = scale(0, end, box.left, box.right);
  const y = log ? scale(low / 1.1, high * 1.1, box.bottom, box.top, true) : scale(0, high * 1.08, box.bottom, box.top);
  axes(overlay, box, x, y, {}, true);
  let d = "";
  rows.forEach(([spent, value], k) => { d += k ? `H${x(spent).toFixed(1)}V${y(value).toFixed(1)}` : `M${x(spent).toFixed(1)} ${y(value).toFixed(1)}`; });
  overlay.append(svg("path", { class: "curve", d: `${d}H${box.right}` }));
}

function paintShares({ overlay, width, height }, view) {
  const { history, points } = view;
  if (!history.spent.length) return nothing(overlay, width, height, "nothing measured yet");
  const box = { left: 46, top: 8, right: width - 8, bottom: height - 24 };
  const x = scale(0, history.spent.at(-1) * 1.02 || 1, box.left, box.right);
  const y = scale(0, 100, box.bottom, box.top);
  const count = { H: history.n_above, M: history.n_potential, L: history.n_below };
  let under = { first: 0, shares: new Array(history.spent.length).fill(0) };
  for (const letter of ["H", "M", "L"]) {
    const over = { first: letter === "H" ? 0 : 100, shares: under.shares.map((share, k) => share + (100 * count[letter][k]) / points) };
    overlay.append(svg("path", { class: `area-${letter}`, d: `M${there(over)}${back(under)}Z` }));
    under = over;
  }
  axes(overlay, box, x, y, { percent: true });

  // Steps from left to right and back; before the first value all points are open.
  function there({ first, shares }) {
    const steps = shares.map((share, k) => `H${x(history.spent[k]).toFixed(1)}V${y(share).toFixed(1)}`);
    return `${box.left} ${y(first)}${steps.join("")}H${box.right}`;
  }
  function back({ first, shares }) {
    const steps = shares.map((_, k) => `H${x(history.spent[k]).toFixed(1)}V${y(k ? shares[k - 1] : first).toFixed(1)}`);
    return `V${y(shares.at(-1)).toFixed(1)}${steps.reverse().join("")}H${box.left}`;
  }
}
