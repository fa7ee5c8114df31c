// The page of one study: plot of the domain, next measurement, certificate, progress, measurements and history.

import { download, get, post, studyPath, watchStudy } from "./api.js";
import { progressCharts } from "./charts.js";
import { announce, el, replace, runWithButton } from "./dom.js";
import { domainPlot } from "./domain-plot.js";
import { eventLogPanel } from "./event-log.js";
import { countNoun, formatPoint, number, share } from "./format.js";
import { measurementsPanel } from "./measurements.js";
import { suggestionsPanel } from "./suggestions.js";

export async function showStudy(main, name, server, showConnection) {
  let view = await get(`${studyPath(name)}/view`);
  if (view.state === "broken") {
    replace(main, brokenStudy(view));
    return () => {};
  }
  const writable = server.access === "write";
  const current = () => view;
  const act = async (verb, body) => {
    const answer = await post(`${studyPath(name)}/${verb}`, body);
    await refresh();
    return answer;
  };

  const check = async (body) => (await post(`${studyPath(name)}/check`, body)).warnings;

  const head = el("div", { class: "head" });
  const files = downloads(name);
  const keyNumbers = el("dl", { class: "key-numbers", "aria-label": "Status" });
  const panels = {
    suggestions: suggestionsPanel(current, writable, act, check, server.limits),
    plot: domainPlot(current, (point) => panels.suggestions.pick(point)),
    certificate: certificatePanel(current),
    progress: progressCharts(current),
    measurements: measurementsPanel(current, writable, act),
    eventLog: eventLogPanel(name, writable, act),
  };
  const section = (css, label, ...children) => el("section", { class: `card ${css}`, "aria-label": label }, children);
  const summary = el("div", { class: "summary-lines" });
  const warnings = el("div", { class: "warnings", role: "status" });
  replace(main, head, keyNumbers, summary, warnings, el("div", { class: "study" },
    section("map", "Map", panels.plot.node),
    el("div", { class: "side" },
      section("next", "Next measurement", panels.suggestions.node),
      section("certificate", "Certificate", panels.certificate.node),
      section("log", "History", panels.eventLog.node)),
    section("progress", "Progress", el("h2", {}, "Progress"), panels.progress.node),
    section("measurements", "Measurements", panels.measurements.node)));

  function draw() {
    main.classList.toggle("optimum", !view.level_set);
    replace(head, el("h1", {}, view.name), el("span", { class: `badge ${view.state}` }, view.state),
      el("span", { class: "grow" }), files,
      el("p", { class: "description" }, description(view)));
    replace(keyNumbers, numbers(view).map(([term, value, more]) =>
      el("div", {}, el("dt", {}, term), el("dd", {}, value, more ? el("small", {}, ` ${more}`) : null))));
    replace(summary, summaryLines(view).map((text) => el("p", {}, text)));
    replace(warnings, view.warnings.map((text) => el("p", { class: "warning" }, `${text[0].toUpperCase()}${text.slice(1)}.`)));
    for (const panel of Object.values(panels)) panel.redraw();
  }

  // A refresh that is requested while one runs starts when that one ends; several requests start one. The promise is
  // kept when the page shows everything that was stored before the call.
  let running = null;
  let requested = false;
  function refresh() {
    requested = true;
    running ??= fetchAndDraw();
    return running;
  }

  async function fetchAndDraw() {
    try {
      while (requested) {
        requested = false;
        view = await get(`${studyPath(name)}/view`);
        if (view.state === "broken") { replace(main, brokenStudy(view)); return; }
        draw();
      }
    } finally {
      running = null;
    }
  }

  const announceChange = () => announce(`${countNoun(view.result.steps, "measurement")}, ${countNoun(view.pending.length, "pending suggestion")}`);
  draw();
  window.addEventListener("themechange", draw);
  const stopWatching = watchStudy(name, (version) => {
    if (version !== view.version) refresh().then(announceChange).catch(() => {});
  }, showConnection);
  return () => { stopWatching(); window.removeEventListener("themechange", draw); };
}

function description(view) {
  const goal = view.words[0].toUpperCase() + view.words.slice(1);
  const points = `${countNoun(view.points, view.kind === "box" ? "representer point" : "point")} over ${view.columns.map((column) => column.label).join(", ")}`;
  return `${goal} ${points}.`;
}

// [label, number, remark] of each number at the top.
function numbers(view) {
  const { result } = view;
  const rows = [
    ["Measured", number(result.steps)],
    ["Pending", number(view.pending.length)],
    ["Cost spent", number(result.spent)],
  ];
  if (result.failed) rows.push(["Failed", number(result.failed)]);
  if (result.infeasible_share > 0) rows.push(["Cannot be measured", `${number(100 * result.infeasible_share, 2)} %`, "of the domain, expected"]);
  const { classified, best_observed: measured, recommended_value: value } = result;
  if (view.level_set) {
    rows.push(["Expected F1", ...estimate(result.expected_f1, share)]);
    rows.push(["Above", number(classified.above)], ["Undecided", number(classified.undecided)], ["Below", number(classified.below)]);
    return rows;
  }
  if (measured) rows.push(["Best so far", number(measured.value), `#${measured.id}`]);
  if (result.steps && value) rows.push(["Recommended", number(result.best.mean), `(${number(value.low)} to ${number(value.high)})`]);
  rows.push(["Expected regret", ...estimate(result.expected_regret, (distance) => number(distance, 3))]);
  rows.push([`Possible ${view.sign > 0 ? "maxima" : "minima"}`, number(classified.undecided), `of ${number(view.points)}`]);
  return rows;
}

// The mean and the 95 % interval of an expected score, as texts.
function estimate({ mean, low, high }, format) {
  if (mean === null) return ["–", "not known yet"];
  return [format(mean), `(${format(low)} to ${format(high)})`];
}

// Progress towards a limit on the score, why nothing is suggested any more, best measurement and recommended point.
function summaryLines(view) {
  const { best, best_observed: measured, reason, recommended_value: value, steps } = view.result;
  const lines = view.progress_texts.map((text) => `Progress: ${text}.`);
  lines.push(...view.vehicle_texts.map((text) => `Vehicle: ${text}.`));
  if (reason) lines.push(`${view.state === "finished" ? "Finished" : "Stopped"}: ${reason}.`);
  if (view.level_set || !steps) return lines;
  if (measured) lines.push(`Best so far: ${number(measured.value)} at ${formatPoint(measured.point, view.columns)} (measurement ${measured.id}).`);
  if (value) {
    lines.push(`Recommended: ${formatPoint(best.point, view.columns)}, estimated value ${number(best.mean)} ± ${number(best.sd, 2)} `
      + `(95 %: ${number(value.low)} to ${number(value.high)}).`);
  }
  return lines;
}

function downloads(name) {
  const alert = el("span", { class: "note", role: "alert" });
  const button = (label, path, file) => {
    const node = el("button", { type: "button", onclick: () => runWithButton(node, alert, () => download(`${studyPath(name)}/${path}`, file)) }, label);
    return node;
  };
  return el("div", { class: "row" }, button("Report", "report", `${name}.html`), button("Table", "export.csv", `${name}.csv`),
    button("Export", "export", `${name}.json`), alert);
}

function certificatePanel(current) {
  const node = el("div", {});
  const items = (title, rows) => (rows.length ? [el("h3", {}, title), el("ul", {}, rows.map((row) => el("li", {}, row)))] : []);
  function redraw() {
    const { caveats, paper, result: { certificate, model_check: check } } = current();
    const open = node.querySelector("details")?.open ?? false;
    replace(node, el("h2", {}, "Certificate"),
      el("blockquote", {}, certificate.statement),
      items("Assumptions", certificate.assumes),
      check.ok
        ? el("p", { class: "note" }, `Model check: ${check.message}`)
        : el("p", { class: "failed-check" }, el("strong", {}, "Model check failed. "), check.message),
      items("Caveats", caveats),
      el("details", { open, class: "paper" }, el("summary", {}, paper.title),
        el("p", {}, el("span", { class: `badge ${paper.regime}` }, paper.regime), " ", el("span", { class: "note" }, `${paper.summary}.`)),
        el("dl", { class: "facts" }, paper.rows.flatMap(([term, text]) => [el("dt", {}, term), el("dd", {}, text)])),
        items("Caveats", paper.caveats)));
  }
  return { node, redraw };
}

function brokenStudy(view) {
  return el("div", { class: "card" }, el("div", { class: "head" }, el("h1", {}, view.name), el("span", { class: "badge broken" }, "broken")),
    el("p", {}, "This study cannot be opened. Its stored events were not changed."),
    el("p", { class: "alert", role: "alert" }, view.problem),
    el("p", { class: "note" }, "Restore a backup of the store, or fix what the message names, then try again."),
    el("p", { class: "row" }, el("button", { class: "main", onclick: () => location.reload() }, "Try again"), el("a", { class: "button", href: "#/" }, "All studies")));
}
