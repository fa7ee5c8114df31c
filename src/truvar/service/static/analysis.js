// The tabs of the analysis: convergence, slices, importance and model check. Their data are fetched when they are shown.

import { get, studyPath } from "./api.js";
import { isConnected } from "./connection.js";
import { checkChart, importanceBars, profileChart, scoreChart, valuesChart } from "./charts.js";
import { el, radioButtons, replace } from "./dom.js";
import { formatPoint } from "./format.js";
import { formatPlace } from "./places.js";
import { extent } from "./scale.js";
import { tabs } from "./tabs.js";

const AXES = [["spent", "Cost"], ["steps", "Measurements"]];
const AXIS_LABELS = { spent: "cost", steps: "measurements" };
const LATER = 400; // milliseconds after a change before the answer is requested again

export function analysisPanel(current) {
  const name = current().name;
  const alert = el("p", { class: "alert", role: "alert" });
  const convergence = convergenceTab(current);
  const model = modelTabs(current);
  const panels = tabs("Analysis", [
    ["convergence", "Convergence", convergence.node],
    ["slices", "Slices", model.slices],
    ["importance", "Importance", model.importance],
    ["check", "Model check", model.check],
  ], () => load());
  const status = el("p", { class: "note", role: "status" });
  const node = el("div", {}, status, panels.node, alert);
  const shown = { convergence: null, model: null }; // version that each was drawn from
  let timer;
  let turns = 0; // requests so far; an answer that was overtaken by another request is ignored

  async function load() {
    const which = panels.selected() === "convergence" ? "convergence" : "model";
    const { version } = current();
    const panel = which === "convergence" ? convergence : model;
    if (shown[which] === version) return panel.redraw();
    turns += 1;
    const turn = turns;
    node.setAttribute("aria-busy", "true");
    if (shown[which] === null) status.textContent = "Computing …";
    try {
      const answer = await get(`${studyPath(name)}/${which}`);
      if (turn !== turns) return undefined;
      panel.take(answer);
      alert.textContent = "";
      if (answer.complete !== false) shown[which] = version;
      else if (isConnected()) timer = setTimeout(load, 0); // the server computes for a while at a time
    } catch (error) {
      if (error.status) alert.textContent = error.message; // without a network the old drawing stays
    } finally {
      if (shown[which] === version || alert.textContent || !isConnected()) {
        node.removeAttribute("aria-busy");
        status.textContent = "";
      }
    }
    return undefined;
  }

  function redraw() {
    convergence.redraw();
    model.redraw();
    clearTimeout(timer);
    timer = setTimeout(load, shown.convergence === null && shown.model === null ? 0 : LATER);
  }
  function leave() {
    clearTimeout(timer);
    turns += 1;
  }
  return { node, redraw, leave };
}

function convergenceTab(current) {
  let data = null;
  let axis = "spent";
  const at = (rows) => rows.map((row) => ({ ...row, at: row[axis] }));
  const values = valuesChart(() => {
    if (!data?.best.length) return null;
    return { rows: at(data.best), axis: AXIS_LABELS[axis], thresholds: current().thresholds, optimum: !current().level_set };
  }, current().quantity_label);
  const score = scoreChart(() => {
    const rows = data ? at(data.scores).filter((row) => row.mean !== null) : [];
    if (!rows.length) return null;
    const isF1 = data.score === "f1";
    const name = { f1: "Expected F1", rmse: "Expected RMSE" }[data.score] ?? "Expected regret";
    const { unit } = current();
    return { rows, axis: AXIS_LABELS[axis], name: unit && !isF1 ? `${name} (${unit})` : name, goal: data.goal, end: isF1 ? 1 : null };
  });
  const choice = radioButtons("Horizontal axis", AXES, axis, (chosen) => { axis = chosen; redraw(); });
  const charts = el("div", { class: "charts" }, score.node, values.node);
  const node = el("div", {}, el("div", { class: "row" }, el("span", { class: "note" }, "Against"), choice), charts);
  function redraw() {
    charts.classList.toggle("no-data", !data?.best.length);
    score.redraw();
    values.redraw();
  }
  return { node, redraw, take(answer) { data = answer; redraw(); } };
}

function modelTabs(current) {
  let data = null;
  const note = el("p", { class: "note" });
  const grid = el("div", { class: "charts" });
  const columns = current().columns;
  const thresholds = () => current().thresholds;
  const range = () => {
    const [low, high] = extent([...data.profiles.flatMap((curve) => [...curve.low, ...curve.high]), ...thresholds()]);
    const margin = 0.05 * (high - low || 1);
    return [low - margin, high + margin];
  };
  const profiles = columns.map((column, k) => profileChart(() => {
    if (!data?.profiles) return null;
    return { ...data.profiles[k], column, thresholds: thresholds(), range: range() };
  }));
  replace(grid, profiles.map((profile) => profile.node));

  const bars = importanceBars(() => data?.importance
    ?.map((row, k) => ({ ...row, label: columns[k].label })).sort((a, b) => b.total - a.total));
  const meaning = el("p", { class: "note" });
  const check = checkChart(() => (data?.check.ids.length ? data.check : null), current().quantity_label);
  const finding = el("p", {});
  const units = el("p", { class: "note", hidden: true }, "The axes show the values as the model sees them, transformed.");
  const explanation = el("p", { class: "note" }, "Each value is predicted from all others. Dots near the dashed line, and about 95 % of the bars across it, mean that the model can be trusted.");

  function redraw() {
    if (!data) return;
    const { best } = current().result; // whose name the answer lacks
    const isBest = best && formatPoint(best.point, columns) === formatPoint(data.at, columns);
    const point = formatPlace(isBest ? best : { point: data.at }, columns);
    const quantity = current().quantity_label;
    note.textContent = data.profiles
      ? `Estimate${quantity ? ` of ${quantity}` : ""} and 95 % interval along each column, through ${point} (dashed), where ${columns.length > 1 ? "the other columns are held" : "the answer is"}.`
      : data.problem ?? "No model yet: it is learned from the first measurements.";
    grid.hidden = !data.profiles;
    meaning.textContent = importanceText(data, columns);
    finding.textContent = data.check.message;
    const { log, power } = current().settings.transform;
    units.hidden = !log && power === 1;
    finding.className = data.check.ok ? "" : "failed-check";
    for (const profile of profiles) profile.redraw();
    bars.redraw();
    check.redraw();
  }
  return {
    slices: el("div", {}, note, grid), importance: el("div", {}, meaning, bars.node), check: el("div", {}, finding, check.node, explanation, units), redraw,
    take(answer) { data = answer; redraw(); },
  };
}

function importanceText(data, columns) {
  if (data.problem) return data.problem;
  if (!data.known) return "No model yet: it is learned from the first measurements.";
  if (!data.importance) return "The estimate is the same everywhere, so that no column matters yet.";
  const shares = data.importance.map((row) => row.total);
  const most = shares.indexOf(Math.max(...shares));
  return "How much of the variation of the estimate needs each column, if all vary over their ranges. The strong part of a bar is what the "
    + `column explains alone, the rest it explains together with others. Most important: ${columns[most].label}, with ${Math.round(100 * shares[most])} %.`;
}
