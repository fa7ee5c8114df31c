// Whether the server can be reached: the dot in the header, and a bar with the time of what is shown. Every request says
// how it went; while the server is not reached, `probe` asks for it again.

import { el, replace } from "./dom.js";

const PROBE = 5_000; // milliseconds between two attempts to reach the server

let isLost = false;
let shownSince = null; // time of the oldest answer that is shown instead of a new one
let live = ""; // "live", "lost", or "" for a part of the page without a stream of changes
const listeners = new Set();
const reconnected = new Set();

function change(lost) {
  const wasLost = isLost;
  isLost = lost;
  draw();
  for (const listener of listeners) listener(lost);
  if (wasLost && !lost) for (const listener of reconnected) listener();
}

export const isConnected = () => !isLost;

// The server answered.
export function reached() {
  if (!isLost) return;
  shownSince = null;
  change(false);
}

// The server did not answer.
export function lost() {
  if (!isLost) change(true);
}

// An answer of that time is shown instead of a new one.
export function showsAnswerOf(time) {
  if (!isLost || !time) return;
  if (!shownSince || time < shownSince) shownSince = time;
  draw();
}

// Calls `listener()` when the server is reached again. Returns a function that ends that.
export function onReconnect(listener) {
  reconnected.add(listener);
  return () => reconnected.delete(listener);
}

export function showLive(state) {
  live = state;
  draw();
}

// Keeps trying to reach the server while it is not reached.
export function startProbing(probe) {
  let timer = null;
  const ask = () => probe().catch(() => {});
  const attempt = () => { if (isLost) ask(); };
  listeners.add((nowLost) => {
    clearInterval(timer);
    timer = nowLost ? setInterval(attempt, PROBE) : null;
  });
  window.addEventListener("online", attempt);
  window.addEventListener("offline", ask); // a server on the same machine is reached anyway
}

function draw() {
  const state = isLost ? "lost" : live;
  const node = document.getElementById("connection");
  node.className = `connection ${state}`;
  node.textContent = { live: "live", lost: "not connected" }[state] ?? "";
  const bar = document.getElementById("offline");
  bar.hidden = !isLost;
  const time = shownSince && new Date(shownSince).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  replace(bar, isLost ? el("p", {}, el("strong", {}, "No connection to the server. "),
    time ? `The page shows what was known on ${time}. ` : "", "Values that you enter are kept and sent later.") : null);
}
