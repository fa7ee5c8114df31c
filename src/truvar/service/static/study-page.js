// One study: the map, what to measure next, what is proven, how it went, the measurements and the journal.

import { download, get, live, of, post } from "./api.js";
import { charts } from "./charts.js";
import { busy, el, replace, say } from "./dom.js";
import { number, plural } from "./format.js";
import { journal } from "./event-log.js";
import { next } from "./suggestions.js";
import { picture } from "./domain-plot.js";
import { values } from "./measurements.js";

export async function study(main, name, server, link) {
  let view = await get(`${of(name)}/view`);
  if (view.state === "broken") {
    replace(main, broken(view));
    return () => {};
  }
  const writable = server.access === "write";
  const current = () => view;
  const act = async (verb, body) => {
    const answer = await post(`${of(name)}/${verb}`, body);
    await refresh();
    return answer;
  };

  const head = el("div", { class: "head" });
  const figures = el("dl", { class: "figures", "aria-label": "Where the study stands" });
  const parts = {
    next: next(current, writable, act, server.limits),
    picture: picture(current, (point) => parts.next.pick(point)),
    certificate: certificate(current),
    charts: charts(current),
    values: values(current, writable, act),
    journal: journal(name, writable, act),
  };
  replace(main, head, figures, el("div", { class: "study" },
    el("section", { class: "card map", "aria-label": "Map" }, parts.picture.node),
    el("div", { class: "side" },
      el("section", { class: "card next", "aria-label": "Next measurement" }, parts.next.node),
      el("section", { class: "card certificate", "aria-label": "What is proven" }, parts.certificate.node),
      el("section", { class: "card log", "aria-label": "Journal" }, parts.journal.node)),
    el("section", { class: "card course", "aria-label": "How it went" }, el("h2", {}, "How it went"), parts.charts.node),
    el("section", { class: "card values", "aria-label": "Measurements" }, parts.values.node)));

  function draw() {
    main.classList.toggle("optimum", !view.level_set);
    replace(head, el("h1", {}, view.name), el("span", { class: `badge ${view.state}` }, view.state),
      el("span", { class: "grow" }), exports(name),
      el("p", { class: "words" }, sentence(view)));
    replace(figures, numbers(view).map(([term, value, more]) =>
      el("div", {}, el("dt", {}, term), el("dd", {}, value, more ? el("small", {}, ` ${more}`) : null))));
    for (const part of Object.values(parts)) part.redraw();
  }

  let [running, again] = [false, false];
  async function refresh() {
    if (running) { again = true; return; }
    running = true;
    try {
      do {
        again = false;
        view = await get(`${of(name)}/view`);
        if (view.state === "broken") { replace(main, broken(view)); return; }
        draw();
      } while (again);
    } finally {
      running = false;
    }
  }

  draw();
  const themed = () => draw();
  window.addEventListener("themed", themed);
  const stop = live(name, (version) => {
    if (version !== view.version) refresh().then(() => say(`${plural(view.result.steps, "measurement")}, ${plural(view.pending.length, "suggestion")} waiting`)).catch(() => {});
  }, link);
  return () => { stop(); window.removeEventListener("themed", themed); };
}

function sentence(view) {
  const points = `${plural(view.points, view.kind === "box" ? "representer point" : "point")} over ${view.columns.map((c) => c.label).join(", ")}`;
  const goal = view.words[0].toUpperCase() + view.words.slice(1);
  const end = view.result.reason ? ` Finished: ${view.result.reason}.` : "";
  return `${goal} ${points}.${view.state === "finished" ? end : ""}`;
}

function numbers(view) {
  const { result } = view;
  const rows = [
    ["Measured", number(result.steps)],
    ["Waiting", number(view.pending.length), view.pending.length ? "suggested" : ""],
    ["Cost spent", number(result.spent)],
    ["Accuracy ε", result.epsilon === null ? "–" : number(result.epsilon, 3), result.epsilon === null ? "no claim yet" : ""],
  ];
  if (view.level_set) rows.push(["Above (H)", number(result.above)], ["Open (M)", number(result.potential)], ["Below (L)", number(result.below)]);
  else {
    rows.push([`Possible ${view.sign > 0 ? "maxima" : "minima"} (M)`, number(result.potential)]);
    if (result.steps) rows.push(["Best so far", number(result.best.mean), `± ${number(result.best.sd, 2)}`]);
  }
  return rows;
}

function exports(name) {
  const alert = el("span", { class: "note", role: "alert" });
  const button = (label, path, file) => {
    const node = el("button", { type: "button", onclick: () => busy(node, alert, () => download(`${of(name)}/${path}`, file)) }, label);
    return node;
  };
  return el("div", { class: "row" }, button("Report", "report", `${name}.html`), button("Table", "export.csv", `${name}.csv`),
    button("Export", "export", `${name}.json`), alert);
}

const REGIMES = {
  theorem: "proven, cost bound included",
  outside: "proven, no bound on the cost",
  heuristic: "rule of thumb",
  learned: "model learned from these values",
};

function certificate(current) {
  const node = el("div", {});
  return {
    node,
    redraw() {
      const { certificate: said } = current().result;
      const items = (title, rows) => (rows.length ? [el("h3", {}, title), el("ul", {}, rows.map((row) => el("li", {}, row)))] : []);
      const open = node.querySelector("details")?.open ?? false;
      replace(node, el("h2", {}, "What is settled"),
        el("blockquote", {}, said.statement),
        el("p", {}, el("span", { class: `badge ${said.regime}` }, said.regime), " ", el("span", { class: "note" }, REGIMES[said.regime] ?? ""),
          said.delta === null ? null : el("span", { class: "note" }, `, with probability ${number(1 - said.delta, 3)}`)),
        el("details", { open }, el("summary", {}, "On what it rests"), el("p", { class: "note" }, `${said.because}.`),
          items("It assumes that", said.assumes), items("And", said.caveats)));
    },
  };
}

function broken(view) {
  return el("div", { class: "card" }, el("div", { class: "head" }, el("h1", {}, view.name), el("span", { class: "badge broken" }, "broken")),
    el("p", {}, "This study cannot be opened. Nothing in its record was changed."),
    el("p", { class: "alert", role: "alert" }, view.problem),
    el("p", { class: "note" }, "Its record is kept in the store; restore a copy, or mend what the message names, then open it again."),
    el("p", { class: "row" }, el("button", { class: "main", onclick: () => location.reload() }, "Try again"), el("a", { class: "button", href: "#/" }, "All studies")));
}
