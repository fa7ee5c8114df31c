// Measured values, corrections, failures and exclusions on their way to the server. Each is kept in the local storage
// until the server has answered, so that none is lost without a network: it is sent again, in the order of entry, when
// the server can be reached. The server counts each once however often it is sent: a value by the id of its suggestion or
// by its key, a correction by the value that it replaces, a failure or exclusion by the id and the reason.

import { post, studyPath } from "./api.js";

const KEY = `truvar-unsent:${location.pathname}`; // in the local storage; one server may serve several stores
const RETRY = 5_000; // milliseconds between two attempts while something waits
const TEMPORARY = [0, 401, 408, 429]; // HTTP statuses after which the same request may succeed later; 5xx too

let memory = null; // the list, where the browser keeps nothing
let sending = null; // the promise of the attempt that is under way
const answers = new Map(); // number of a value: answer of the server
const listeners = new Set();

// A text that no other value has, so that the server recognises a value that is sent twice.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function read() {
  if (memory) return memory;
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
}

function write(items) {
  try {
    localStorage.setItem(KEY, JSON.stringify(items));
    memory = null;
  } catch {
    memory = items; // no storage, or a full one: kept as long as the page is open
  }
  for (const listener of listeners) listener(items);
}

const change = (number, update) => write(read().flatMap((item) => (item.number === number ? update(item) : [item])));

// What waits or was refused, in the order of entry: {number, study, verb, body, label, entered, error}.
export const unsent = (study) => read().filter((item) => study === undefined || item.study === study);

export const isVolatile = () => memory !== null;

// Calls `listener(items)` whenever the list changes. Returns a function that ends that.
export function onUnsentChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const discard = (number) => change(number, () => []);

export const discardAll = () => write([]);

export function sendAgain(number) {
  change(number, (item) => [{ ...item, error: null }]);
  return send();
}

export const isValue = (item) => ["tell", "tell-repeats"].includes(item.verb);

// Sends a value or another change behind those that wait. Returns the answer of the server, or null if it is not reached: the value then
// waits. Throws if the server refuses the value, which does not wait then.
export async function deliver(study, verb, body, label) {
  const number = newKey();
  write([...read(), { number, study, verb, body, label, entered: new Date().toISOString(), error: null }]);
  const state = () => read().find((item) => item.number === number);
  await send();
  if (state() && !state().error) await send(); // it came while the attempt before was ending
  const waiting = state();
  if (waiting?.error) {
    discard(number);
    throw new Error(waiting.error);
  }
  const answer = answers.get(number) ?? {};
  answers.delete(number);
  return waiting ? null : answer;
}

// Sends what waits, one after the other, until nothing waits or the server is not reached.
export function send() {
  sending ??= sendAll().finally(() => { sending = null; });
  return sending;
}

async function sendAll() {
  for (;;) {
    const item = read().find((each) => !each.error);
    if (!item) return;
    try {
      const answer = await post(`${studyPath(item.study)}/${item.verb}`, item.body);
      answers.set(item.number, answer);
      change(item.number, () => []);
    } catch (error) {
      if (TEMPORARY.includes(error.status) || error.status >= 500) return;
      change(item.number, (each) => [{ ...each, error: error.message }]);
    }
  }
}

// Other tabs change the list too.
window.addEventListener("storage", (event) => {
  if (event.key === KEY) for (const listener of listeners) listener(read());
});
window.addEventListener("online", () => send());
setInterval(() => { if (read().some((item) => !item.error)) send(); }, RETRY);
