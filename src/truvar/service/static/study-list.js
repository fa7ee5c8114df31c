// The list of all studies of the store.

import { get } from "./api.js";
import { el, replace } from "./dom.js";
import { formatTime, number } from "./format.js";

const REFRESH = 15_000; // milliseconds

export async function showStudyList(main, server) {
  const body = el("div", {});
  const newStudy = () => (server.access === "write" ? el("a", { class: "button main", href: "#/new" }, "New study") : null);
  async function refresh() {
    const { studies } = await get("/studies");
    replace(body, studies.length ? table(studies) : noStudies(newStudy()));
  }
  await refresh();
  replace(main, el("div", { class: "head" }, el("h1", {}, "Studies"), el("span", { class: "grow" }), newStudy()), body);
  const timer = setInterval(() => refresh().catch(() => {}), REFRESH);
  return () => clearInterval(timer);
}

const noStudies = (link) => el("div", { class: "card empty" }, el("h2", {}, "No studies yet"),
  el("p", {}, "A study suggests where to measure next and shows what is known so far. Describe what can be measured and what you want to find out; the first suggestion follows immediately."),
  link);

function table(studies) {
  const headings = ["Study", "Goal", "State", "Measured", "Pending", "Cost", "Last change"];
  return el("div", { class: "card" }, el("table", { class: "studies" },
    el("caption", { class: "visually-hidden" }, "All studies"),
    el("thead", {}, el("tr", {}, headings.map((heading, k) => el("th", { scope: "col", class: k < 3 ? "text" : null }, heading)))),
    el("tbody", {}, studies.map((study) => el("tr", {},
      el("td", { class: "text name" }, el("a", { href: `#/study/${encodeURIComponent(study.name)}` }, study.name)),
      el("td", { class: "text", "data-label": "Goal" }, study.goal || "–"),
      el("td", { class: "text", "data-label": "State" }, el("span", { class: `badge ${study.state}`, title: study.problem ?? null }, study.state)),
      el("td", { "data-label": "Measured" }, number(study.steps)),
      el("td", { "data-label": "Pending" }, number(study.pending)),
      el("td", { "data-label": "Cost" }, number(study.spent)),
      el("td", { "data-label": "Last change" }, formatTime(study.changed)))))));
}
