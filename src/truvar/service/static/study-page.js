// The page of one study: plot of the domain, next measurement, certificate, progress, measurements and history.

import { download, get, post, studyPath, watchStudy } from "./api.js";
import { analysisPanel } from "./analysis.js";
import { answerPanel } from "./answer.js";
import { onReconnect, showLive } from "./connection.js";
import { certificatePanel } from "./certificate.js";
import { announce, el, replace, runWithButton } from "./dom.js";
import { domainPlot } from "./domain-plot.js";
import { eventLogPanel } from "./event-log.js";
import { countNoun } from "./format.js";
import { measurementsPanel } from "./measurements.js";
import { deliver, onUnsentChange, send } from "./offline-queue.js";
import { openSettings } from "./study-settings.js";
import { suggestionsPanel } from "./suggestions.js";
import { tilesPanel } from "./tiles.js";

export async function showStudy(main, name, server) {
  let view = await get(`${studyPath(name)}/view`);
  const writable = server.access === "write";
  if (view.state === "broken") {
    replace(main, brokenStudy(view, writable));
    return () => {};
  }
  const current = () => view;
  const act = async (verb, body) => {
    const answer = await post(`${studyPath(name)}/${verb}`, body);
    await refresh();
    return answer;
  };
  // Values, corrections, failures and exclusions go through the queue, which keeps them until the server has answered;
  // null: it was not reached.
  const tell = async (verb, body, label) => {
    const answer = await deliver(name, verb, body, label);
    if (answer) await refresh().catch(() => {});
    else redrawUnsent();
    return answer;
  };
  function redrawUnsent() {
    panels.suggestions.redraw();
    panels.measurements.redraw();
  }
  const check = async (body) => {
    try {
      return (await post(`${studyPath(name)}/check`, body)).warnings;
    } catch (error) {
      // Without a network, or with a token that is not accepted any more, the value is kept, and checked when it is told.
      if (error.status === 0 || error.status === 401) return [];
      throw error;
    }
  };

  const study = { act, check, current, limits: server.limits, tell, writable };
  const head = el("div", { class: "head" });
  const files = downloads(name, writable, view.is_geographic);
  const panels = {
    answer: answerPanel(current),
    tiles: tilesPanel(current),
    suggestions: suggestionsPanel(study),
    plot: domainPlot(study, (point) => panels.suggestions.pick(point)),
    certificate: certificatePanel(current),
    analysis: analysisPanel(current),
    measurements: measurementsPanel(study),
    eventLog: eventLogPanel(name, writable, act),
  };
  const section = (css, label, ...children) => el("section", { class: `card ${css}`, "aria-label": label }, children);
  const summary = el("div", { class: "summary-lines" });
  const warnings = el("div", { class: "warnings", role: "status" });
  replace(main, el("div", { class: "study-page" }, head, files, panels.answer.node, panels.tiles.node, summary, warnings, el("div", { class: "study" },
    section("map", "Map", panels.plot.node, mapFiles(name)),
    el("div", { class: "side" },
      section("next", "Next measurement", panels.suggestions.node),
      section("certificate", "Certificate", panels.certificate.node),
      section("log", "History", panels.eventLog.node)),
    section("progress", "Analysis", el("h2", {}, "Analysis"), panels.analysis.node),
    section("measurements", "Measurements", panels.measurements.node))));

  function draw() {
    main.classList.toggle("optimum", !view.level_set);
    replace(head, el("h1", {}, view.name), el("span", { class: `badge ${view.state}` }, view.state),
      el("p", { class: "description" }, description(view)));
    replace(summary, summaryLines(view).map((text) => el("p", {}, text)));
    replace(warnings, view.warnings.map((text) => el("p", { class: "warning" }, `${text[0].toUpperCase()}${text.slice(1)}.`)));
    for (const panel of Object.values(panels)) panel.redraw();
  }

  // A refresh that is requested while one runs starts when that one ends; several requests start one. The promise is
  // kept when the page shows everything that was stored before the call.
  let running = null;
  let requested = false;
  let isShown = true; // an answer that comes after somebody left must not replace the next page
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
        if (!isShown) return;
        if (view.state === "broken") { replace(main, brokenStudy(view, writable)); return; }
        draw();
      }
    } catch (error) {
      if (error.status === 404 && isShown) replace(main, missingStudy(name));
      throw error;
    } finally {
      running = null;
    }
  }

  const announceChange = () => announce(`${countNoun(view.result.steps, "measurement")}, ${countNoun(view.pending.length, "pending suggestion")}`);
  draw();
  window.addEventListener("themechange", draw);
  const stopListening = onUnsentChange(redrawUnsent);
  const stopReconnecting = onReconnect(() => refresh().catch(() => {}));
  const stopWatching = watchStudy(name, (version) => {
    if (version !== view.version) refresh().then(announceChange).catch(() => {});
  }, (state) => {
    showLive(state);
    if (state === "live") send();
  });
  return () => {
    isShown = false;
    stopWatching();
    stopListening();
    stopReconnecting();
    panels.analysis.leave();
    window.removeEventListener("themechange", draw);
  };
}

function description(view) {
  const points = countNoun(view.points, view.kind === "box" ? "representer point" : "point");
  return `${points} over ${view.columns.map((column) => column.label).join(", ")}.`;
}

// Vehicles, limits that are reached, and why nothing is suggested any more.
function summaryLines(view) {
  const { reason } = view.result;
  const lines = view.vehicle_texts.map((text) => `Vehicle: ${text}.`);
  for (const limit of Object.values(view.progress)) {
    if (limit.reached) lines.push(`The study can stop: ${limit.text}.`);
  }
  if (reason) lines.push(`${view.state === "finished" ? "Finished" : "Stopped"}: ${reason}.`);
  return lines;
}

function downloads(name, writable, geographic) {
  const alert = el("span", { class: "note", role: "alert" });
  const button = (label, path, file) => {
    const node = el("button", { type: "button", onclick: () => runWithButton(node, alert, () => download(`${studyPath(name)}/${path}`, file)) }, label);
    return node;
  };
  const settings = el("button", { type: "button", onclick: () => openSettings(name) }, "Rename or delete");
  return el("div", { class: "row files" },
    button("Report", "report", `${name}.html`),
    button("Measurements (CSV)", "export.csv", `${name}.csv`),
    geographic ? button("Map layer (GeoJSON)", "points.geojson", `${name}-points.geojson`) : button("All points (CSV)", "points.csv", `${name}-points.csv`),
    geographic ? button("Waypoints (GPX)", "waypoints.gpx", `${name}-waypoints.gpx`) : null,
    button("Export study (JSON)", "export", `${name}.json`), writable ? settings : null, alert);
}

// The map as a picture, for a paper or a talk.
function mapFiles(name) {
  const alert = el("span", { class: "note", role: "alert" });
  const button = (format) => {
    const node = el("button", { type: "button", class: "quiet", onclick: () => runWithButton(node, alert, () => download(`${studyPath(name)}/map.${format}`, `${name}-map.${format}`)) }, `Map (${format.toUpperCase()})`);
    return node;
  };
  return el("p", { class: "row" }, ["png", "svg", "pdf"].map(button), alert);
}

function missingStudy(name) {
  return el("div", { class: "card empty" }, el("h1", {}, name), el("p", {}, "This study was renamed or deleted."),
    el("a", { class: "button", href: "#/" }, "All studies"));
}

function brokenStudy(view, writable) {
  return el("div", { class: "card" }, el("div", { class: "head" }, el("h1", {}, view.name), el("span", { class: "badge broken" }, "broken")),
    el("p", {}, "This study cannot be opened. Its stored events were not changed."),
    el("p", { class: "alert", role: "alert" }, view.problem),
    el("p", { class: "note" }, "Restore a backup of the store, or fix what the message names, then try again."),
    el("p", { class: "row" }, el("button", { class: "main", onclick: () => location.reload() }, "Try again"), el("a", { class: "button", href: "#/" }, "All studies"),
      writable ? el("button", { type: "button", onclick: () => openSettings(view.name) }, "Rename or delete") : null));
}
