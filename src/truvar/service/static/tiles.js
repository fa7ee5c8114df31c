// The tiles at the top of a study: what is found, how good it is, and what is left of the budget.

import { el, replace, svg } from "./dom.js";
import { count, countNoun, number, share } from "./format.js";
import { formatPlace } from "./places.js";
import { askedShare } from "./sides.js";

const BAR_WIDTH = 120; // units of the drawing
const BAR_HEIGHT = 14; // units of the drawing

// The unit of the values as it follows a number.
const afterNumber = ({ unit }) => (unit ? ` ${unit}` : "");

export function tilesPanel(current) {
  const node = el("dl", { class: "key-numbers", "aria-label": "Status" });
  function redraw() {
    const view = current();
    const rows = [...(view.level_set ? levelSetTiles(view) : optimumTiles(view)), budgetTile(view), effortTile(view), ...placeTiles(view)];
    replace(node, rows.map(({ term, value, more, bar }) =>
      el("div", {}, el("dt", {}, term), el("dd", {}, value, more ? el("small", {}, ` ${more}`) : null, bar))));
  }
  return { node, redraw };
}

function levelSetTiles(view) {
  const { undecided } = view.result.classified;
  const decided = view.points - undecided;
  const percent = decided === view.points ? 100 : Math.min(99, Math.floor((100 * decided) / view.points));
  return [
    { term: "Decided", value: `${percent} %`, more: `${count(decided)} of ${countNoun(view.points, "point")}, ${view.class_note}` },
    ...(view.result.share_above ? [shareTile(view)] : []),
    ...(view.result.expected_rmse ? mapTiles(view) : []),
    ...(view.result.expected_f1 ? [scoreTile("Expected F1", view.result.expected_f1, view.progress.f1?.goal ?? null, share, 1)] : []),
  ];
}

// How far the map is from the true values.
function mapTiles(view) {
  const unit = afterNumber(view);
  const distance = (value) => number(value, 3);
  const { expected_rmse: rmse, accuracy, accuracy_everywhere: everywhere } = view.result;
  const bound = accuracy === null ? "–" : `± ${distance(accuracy)}${unit}`;
  const more = accuracy === null ? "not known yet" : `at 99 % of the points, ± ${distance(everywhere)}${unit} at all, with 95 % probability`;
  return [{ term: "Accuracy", value: bound, more }, scoreTile("Expected RMSE", rmse, null, distance, 1.1 * (rmse.high ?? 0) || 1, unit)];
}

// The share of the points on the side asked for, or between two thresholds, in percent.
function shareTile(view) {
  const { mean, low, high } = askedShare(view);
  const [first, last] = view.thresholds.map((threshold) => number(threshold));
  const threshold = view.bands?.inside ? `Between ${first} and ${last}` : `${view.sign < 0 ? "Below" : "Above"} ${first}`;
  const term = view.quantities.length ? "Inside" : `${threshold}${afterNumber(view)}`;
  if (mean === null) return { term, value: "–", more: "not known yet" };
  const percent = (value) => number(100 * value, 3);
  return { term, value: `${percent(mean)} %`, more: `of the points (${percent(low)} to ${percent(high)} %)` };
}

function optimumTiles(view) {
  const { best, best_observed: measured, recommended_value: value, steps } = view.result;
  const rows = [];
  if (measured) {
    const shown = measured.plausible ?? measured;
    const remark = shown === measured ? "" : `; measurement ${measured.id} has ${number(measured.value)}, far beyond all others: check it`;
    rows.push({ term: "Best observed", value: `${number(shown.value)}${afterNumber(view)}`, more: `at ${formatPlace(shown, view.columns)} (measurement ${shown.id})${remark}` });
  } else {
    rows.push({ term: "Best observed", value: "–", more: "no measurements yet" });
  }
  if (steps && value) {
    rows.push({ term: "Recommended", value: `${number(best.mean)}${afterNumber(view)}`, more: `± ${number(best.sd, 2)} (95 %: ${number(value.low)} to ${number(value.high)}) at ${formatPlace(best, view.columns)}` });
  }
  const { expected_regret: regret } = view.result;
  const goal = view.progress.regret?.goal ?? null;
  const end = Math.max(regret.high ?? 0, goal ?? 0);
  rows.push(scoreTile("Expected regret", regret, goal, (distance) => number(distance, 3), 1.1 * end || 1, afterNumber(view)));
  return rows;
}

// An expected score with its 95 % interval, and the goal that it is to reach.
function scoreTile(term, { mean, low, high }, goal, format, end, unit = "") {
  const wanted = goal === null ? "" : `goal ${format(goal)}`;
  if (mean === null) return { term, value: "–", more: ["not known yet", wanted].filter(Boolean).join(", ") };
  const range = high === null ? "if it satisfies all constraints" : `${format(low)} to ${format(high)}`;
  const more = [`(${range})`, wanted].filter(Boolean).join(", ");
  return { term, value: `${format(mean)}${unit}`, more, bar: intervalBar(mean, low, high, goal, end) };
}

// A line from 0 to `end` with the interval, the mean, and the goal as a stroke across it.
function intervalBar(mean, low, high, goal, end) {
  const x = (value) => 3 + (BAR_WIDTH - 6) * Math.max(0, Math.min(1, value / end));
  const middle = BAR_HEIGHT / 2;
  return svg("svg", { class: "bar", viewBox: `0 0 ${BAR_WIDTH} ${BAR_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "track", x1: x(0), x2: x(end), y1: middle, y2: middle }),
    svg("line", { class: "interval", x1: x(low), x2: x(high ?? end), y1: middle, y2: middle }),
    svg("line", { class: "mean", x1: x(mean), x2: x(mean), y1: 2, y2: BAR_HEIGHT - 2 }),
    goal === null ? null : svg("line", { class: "goal", x1: x(goal), x2: x(goal), y1: 0, y2: BAR_HEIGHT }));
}

function budgetTile(view) {
  const budget = view.limits.budget ?? null;
  if (budget === null && view.vehicle_budgets.length) return vehicleBudgetTile(view);
  if (budget === null) return { term: "Budget left", value: "–", more: "no budget is set" };
  const pending = view.pending.reduce((sum, suggestion) => sum + suggestion.cost, 0);
  const more = `of ${number(budget)}${pending ? `, ${number(pending)} of it suggested` : ""}`;
  const spent = budget - view.left;
  const bar = svg("svg", { class: "bar", viewBox: `0 0 ${BAR_WIDTH} ${BAR_HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("line", { class: "track", x1: 3, x2: BAR_WIDTH - 3, y1: BAR_HEIGHT / 2, y2: BAR_HEIGHT / 2 }),
    svg("line", { class: "interval", x1: 3, x2: 3 + (BAR_WIDTH - 6) * Math.min(1, budget ? spent / budget : 1), y1: BAR_HEIGHT / 2, y2: BAR_HEIGHT / 2 }));
  return { term: "Budget left", value: number(view.left), more, bar };
}

// What is left of the budgets of the vehicles, all together and each.
function vehicleBudgetTile({ vehicle_budgets: budgets }) {
  const left = budgets.map((row) => Math.max(row.left, 0));
  const each = budgets.map((row, k) => `${row.name} ${number(left[k])} of ${number(row.budget)}`);
  return { term: "Budget left", value: number(left.reduce((sum, part) => sum + part, 0)), more: each.join(", ") };
}

function effortTile(view) {
  const { failed, spent, steps } = view.result;
  const most = view.limits.steps ?? null;
  const texts = [`cost ${number(spent)}`];
  if (view.pending.length) texts.push(`${count(view.pending.length)} pending`);
  if (failed) texts.push(`${count(failed)} failed`);
  return { term: "Measured", value: most === null ? count(steps) : `${count(steps)} of ${count(most)}`, more: texts.join(", ") };
}

// The points that are left out because somebody excluded them or a measurement failed, and those likely to fail.
function placeTiles({ points, result: { excluded, likely_to_fail: likely } }) {
  if (!excluded && !likely) return [];
  const more = `of ${countNoun(points, "point")}, excluded or failed${likely ? `; ${count(likely)} more are likely to fail` : ""}`;
  return [{ term: "Not suggested", value: count(excluded), more }];
}
