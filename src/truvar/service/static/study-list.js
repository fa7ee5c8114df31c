// All studies of the store.

import { get } from "./api.js";
import { el, replace } from "./dom.js";
import { number, when } from "./format.js";

const EVERY = 15_000; // milliseconds

export async function list(main, server) {
  const body = el("div", {});
  const add = server.access === "write" ? el("a", { class: "button main", href: "#/new" }, "New study") : null;
  async function refresh() {
    const { studies } = await get("/studies");
    replace(body, studies.length ? table(studies) : nothing(add));
  }
  await refresh();
  replace(main, el("div", { class: "head" }, el("h1", {}, "Studies"), el("span", { class: "grow" }), add?.cloneNode(true)), body);
  const timer = setInterval(() => refresh().catch(() => {}), EVERY);
  return () => clearInterval(timer);
}

const nothing = (add) => el("div", { class: "card nothing" }, el("h2", {}, "No study yet"),
  el("p", {}, "A study says where to measure next and what is settled so far. Describe what can be measured and what you want to know; the first suggestion comes at once."),
  add);

function table(studies) {
  const head = ["Study", "Goal", "State", "Measured", "Waiting", "Cost", "Last change"];
  return el("div", { class: "card" }, el("table", { class: "studies" },
    el("caption", { class: "unseen" }, "All studies"),
    el("thead", {}, el("tr", {}, head.map((name, k) => el("th", { scope: "col", class: k < 3 ? "text" : null }, name)))),
    el("tbody", {}, studies.map((study) => el("tr", {},
      el("td", { class: "text name" }, el("a", { href: `#/study/${encodeURIComponent(study.name)}` }, study.name)),
      el("td", { class: "text", "data-label": "Goal" }, study.goal || "–"),
      el("td", { class: "text", "data-label": "State" }, el("span", { class: `badge ${study.state}`, title: study.problem ?? null }, study.state)),
      el("td", { "data-label": "Measured" }, number(study.steps)),
      el("td", { "data-label": "Waiting" }, number(study.pending)),
      el("td", { "data-label": "Cost" }, number(study.spent)),
      el("td", { "data-label": "Last change" }, when(study.changed)))))));
}
