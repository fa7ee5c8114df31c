// The page: which part is shown is what stands behind the # of the address.

import { adoptToken, get, setToken } from "./api.js";
import { create } from "./create-study.js";
import { el, field, replace } from "./dom.js";
import { list } from "./study-list.js";
import { study } from "./study-page.js";

const main = document.getElementById("main");
let leave = () => {};

async function show() {
  leave();
  leave = () => {};
  link("");
  const address = location.hash.replace(/^#/, "");
  let server;
  try {
    server = await get("");
  } catch (error) {
    return error.status === 401 ? askToken(error.message) : failed(error);
  }
  replace(main, el("p", { class: "loading" }, "Opening …"));
  const found = address.match(/^\/study\/(.+)$/);
  const parts = found ? [decodeURIComponent(found[1])] : address === "/new" ? ["New study"] : [];
  document.title = [...parts, "truvar"].join(" · ");
  replace(document.getElementById("crumbs"), parts.map((part) => el("li", { "aria-current": "page" }, part)));
  try {
    if (found) leave = await study(main, parts[0], server, link);
    else if (address === "/new") leave = create(main, server);
    else leave = await list(main, server);
  } catch (error) {
    failed(error);
  }
}

function failed(error) {
  replace(main, el("div", { class: "card nothing" }, el("h1", {}, "That did not work"),
    el("p", { class: "alert", role: "alert" }, error.message),
    el("div", {}, el("button", { class: "main", onclick: show }, "Try again"), " ", el("a", { class: "button", href: "#/" }, "All studies"))));
}

function askToken(message) {
  const input = el("input", { type: "password", autocomplete: "off", required: true });
  const form = el("form", { class: "card", onsubmit: (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    show();
  } }, el("h1", {}, "This server wants a token"), el("p", { class: "note" }, message),
  field("Token", input), el("p", {}, el("button", { class: "main" }, "Open")));
  replace(main, form);
  input.focus();
}

function link(state) {
  const node = document.getElementById("link");
  node.className = `link ${state}`;
  node.textContent = { live: "live", lost: "not connected" }[state] ?? "";
}

function theme(name) {
  document.documentElement.dataset.theme = name;
  window.dispatchEvent(new Event("themed"));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const preferred = () => localStorage.getItem("truvar-theme") ?? (dark.matches ? "dark" : "light");
theme(preferred());
dark.addEventListener("change", () => theme(preferred()));
document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem("truvar-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  theme(preferred());
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });

adoptToken();
window.addEventListener("hashchange", () => { adoptToken(); show(); main.focus(); });
show();
