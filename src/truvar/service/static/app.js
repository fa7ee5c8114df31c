// Entry point: shows the part of the page that the # of the address names.
// The page is plain JavaScript modules, so that it needs no build step and loads nothing from other servers.

import { get, onRefusedToken, probe } from "./api.js";
import { onReconnect, showLive, startProbing } from "./connection.js";
import { showCreateStudy } from "./create-study.js";
import { clearConnectionAlerts, el, replace } from "./dom.js";
import { hasAnswers } from "./kept-answers.js";
import { loginForm, showAccount } from "./login.js";
import { send } from "./offline-queue.js";
import { takeTokenFromAddress, token } from "./session.js";
import { showStudyList } from "./study-list.js";
import { showStudy } from "./study-page.js";
import { showUnsentValues } from "./unsent-values.js";

const main = document.getElementById("main");
const account = document.getElementById("account");
const login = loginForm(() => show());
let leave = () => {}; // ends timers and connections of the part that is shown
let isFailed = false; // whether an error is shown instead of a part of the page

async function show() {
  leave();
  leave = () => {};
  isFailed = false;
  showLive("");
  const address = location.hash.replace(/^#/, "");
  let server;
  try {
    server = await get("");
  } catch (error) {
    if (error.status === 401) return undefined; // `onRefusedToken` shows the form
    showAccount(account, null, logIn);
    if (error.status === 0 && !token() && (await hasAnswers())) return logIn("unreachable");
    return showError(error);
  }
  showAccount(account, server, logIn);
  replace(main, el("p", { class: "loading" }, "Loading …"));
  const match = address.match(/^\/study\/(.+)$/);
  const titles = [];
  if (match) titles.push(decodeURIComponent(match[1]));
  else if (address === "/new") titles.push("New study");
  document.title = [...titles, "truvar"].join(" · ");
  replace(document.getElementById("breadcrumb"), titles.map((title) => el("li", { "aria-current": "page" }, title)));
  try {
    if (match) {
      leave = await showStudy(main, titles[0], server);
      get("/studies").catch(() => {}); // so that the list is kept, too
    } else if (address === "/new") leave = showCreateStudy(main, server);
    else leave = await showStudyList(main, server);
  } catch (error) {
    if (error.status !== 401) showError(error);
  }
  return undefined;
}

function showError(error) {
  isFailed = true;
  replace(main, el("div", { class: "card empty" }, el("h1", {}, "The page could not be shown"),
    el("p", { class: "alert", role: "alert" }, error.message),
    el("div", {}, el("button", { class: "main", onclick: show }, "Try again"), " ", el("a", { class: "button", href: "#/" }, "All studies"))));
}

function logIn(reason = "missing") {
  leave();
  leave = () => {};
  showLive("");
  replace(account);
  replace(document.getElementById("breadcrumb"));
  login.setReason(reason);
  if (login.node.isConnected) return; // somebody may be typing
  replace(main, login.node);
  login.focus();
}

onRefusedToken(() => logIn(token() ? "refused" : "missing"));
startProbing(probe);
onReconnect(() => {
  clearConnectionAlerts();
  send();
  if (isFailed) show();
});

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

showUnsentValues(document.getElementById("unsent"));
window.addEventListener("hashchange", async () => { await takeTokenFromAddress(); show(); main.focus(); });
takeTokenFromAddress().then(show);
