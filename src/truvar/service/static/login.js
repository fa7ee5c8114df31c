// Logging in with a token, and out.

import { el, field, replace } from "./dom.js";
import { countNoun } from "./format.js";
import { discardAll, onUnsentChange, unsent } from "./offline-queue.js";
import { setToken, token } from "./session.js";

const REASONS = {
  missing: "",
  refused: "This token is not accepted. It may be mistyped, expired or revoked.",
  unreachable: "The server cannot be reached. With your token the page shows what it showed last.",
};

// `onDone()` is called when a token was entered. Returns {node, setReason("missing" | "refused" | "unreachable")}.
export function loginForm(onDone) {
  const input = el("input", { type: "password", name: "token", autocomplete: "current-password", autocapitalize: "none", spellcheck: "false", required: true });
  const alert = el("p", { class: "alert", role: "alert" });
  const waiting = el("p", { class: "warning" });
  const node = el("form", { class: "card login", onsubmit: async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    input.value = ""; // the form is shown again after logging out
    await setToken(text);
    onDone();
  } }, el("h1", {}, "Log in"), alert,
  waiting,
  field("Token", input), el("p", {}, el("button", { class: "main" }, "Log in")),
  el("p", { class: "note" }, "The person who runs this server gives you a token of your own, or a link that contains it. It stays in this tab until you log out or close it."));
  function showWaiting() {
    const items = unsent().filter((item) => !item.error);
    waiting.hidden = items.length === 0;
    waiting.textContent = `${countNoun(items.length, "entry", "entries")} of this browser will be sent after you log in.`;
  }
  onUnsentChange(showWaiting);
  showWaiting();
  return { node, setReason(reason) { alert.textContent = REASONS[reason]; }, focus: () => input.focus() };
}

// The name of the person who is logged in and a button to log out; nothing on a server without tokens.
export function showAccount(node, server, onLogout) {
  if (!token()) return replace(node);
  const rights = server?.access === "read" ? "read only" : "";
  const text = [server?.holder, rights].filter(Boolean).join(", ");
  return replace(node, text ? el("span", {}, text) : null,
    el("button", { type: "button", class: "quiet", onclick: () => logOut(onLogout) }, "Log out"));
}

// What waits to be sent would be lost: that is asked first.
function logOut(onLogout) {
  const items = unsent();
  if (items.length === 0) return leave(onLogout);
  const discard = el("button", { type: "button", class: "danger", onclick: () => { dialog.close(); leave(onLogout); } }, "Discard and log out");
  const dialog = el("dialog", { "aria-labelledby": "logout-title", onclose: () => dialog.remove() },
    el("h2", { id: "logout-title" }, `${countNoun(items.length, "entry", "entries")} not sent`),
    el("p", {}, "Logging out removes everything that this browser keeps. These entries have not reached the server and would be lost:"),
    el("ul", {}, items.map((item) => el("li", {}, `${item.study}: ${item.label}`))),
    el("p", { class: "row" }, discard, el("button", { type: "button", class: "main", onclick: () => dialog.close() }, "Stay logged in")));
  document.body.append(dialog);
  dialog.showModal();
  return undefined;
}

async function leave(onLogout) {
  discardAll();
  await setToken("");
  onLogout();
}
