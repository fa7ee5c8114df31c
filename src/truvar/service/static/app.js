// Entry point: shows the part of the page that the # of the address names.
// The page is plain JavaScript modules, so that it needs no build step and loads nothing from other servers.

import { get, setToken, takeTokenFromAddress } from "./api.js";
import { showCreateStudy } from "./create-study.js";
import { el, field, replace } from "./dom.js";
import { showStudyList } from "./study-list.js";
import { showStudy } from "./study-page.js";
import { showUnsentValues } from "./unsent-values.js";

const main = document.getElementById("main");
let leave = () => {}; // ends timers and connections of the part that is shown

async function show() {
  leave();
  leave = () => {};
  showConnection("");
  const address = location.hash.replace(/^#/, "");
  let server;
  try {
    server = await get("");
  } catch (error) {
    return error.status === 401 ? showTokenForm(error.message) : showError(error);
  }
  replace(main, el("p", { class: "loading" }, "Loading …"));
  const match = address.match(/^\/study\/(.+)$/);
  const titles = [];
  if (match) titles.push(decodeURIComponent(match[1]));
  else if (address === "/new") titles.push("New study");
  document.title = [...titles, "truvar"].join(" · ");
  replace(document.getElementById("breadcrumb"), titles.map((title) => el("li", { "aria-current": "page" }, title)));
  try {
    if (match) leave = await showStudy(main, titles[0], server, showConnection);
    else if (address === "/new") leave = showCreateStudy(main, server);
    else leave = await showStudyList(main, server);
  } catch (error) {
    showError(error);
  }
}

function showError(error) {
  replace(main, el("div", { class: "card empty" }, el("h1", {}, "The page could not be shown"),
    el("p", { class: "alert", role: "alert" }, error.message),
    el("div", {}, el("button", { class: "main", onclick: show }, "Try again"), " ", el("a", { class: "button", href: "#/" }, "All studies"))));
}

function showTokenForm(message) {
  const input = el("input", { type: "password", autocomplete: "off", required: true });
  const form = el("form", { class: "card", onsubmit: (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    show();
  } }, el("h1", {}, "This server needs a token"), el("p", { class: "note" }, message),
  field("Token", input), el("p", {}, el("button", { class: "main" }, "Open")));
  replace(main, form);
  input.focus();
}

// state: "live", "lost", or "" for a part without a connection.
function showConnection(state) {
  const node = document.getElementById("connection");
  node.className = `connection ${state}`;
  node.textContent = { live: "live", lost: "not connected" }[state] ?? "";
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  window.dispatchEvent(new Event("themechange"));
}

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const preferredTheme = () => localStorage.getItem("truvar-theme") ?? (systemDark.matches ? "dark" : "light");
setTheme(preferredTheme());
systemDark.addEventListener("change", () => setTheme(preferredTheme()));
document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem("truvar-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  setTheme(preferredTheme());
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

// Without a secure connection there is no service worker, and the page cannot be loaded again without a network.
navigator.serviceWorker?.register("worker.js").catch(() => {});

takeTokenFromAddress();
showUnsentValues(document.getElementById("unsent"));
window.addEventListener("hashchange", () => { takeTokenFromAddress(); show(); main.focus(); });
show();
