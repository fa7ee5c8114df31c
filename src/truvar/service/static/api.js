// Requests to the server, with the access token, and the stream of changes. Every request tells connection.js how it went.

import { lost, onReconnect, reached, showsAnswerOf } from "./connection.js";
import { forgetOthers, keepAnswer, keptAnswer } from "./kept-answers.js";
import { token } from "./session.js";

const FIRST_WAIT = 1000; // milliseconds before the first attempt to connect again
const LONGEST_WAIT = 20_000; // milliseconds between two attempts
const SILENCE = 40_000; // milliseconds without a sign of life, of which one is due every 14 s, after which a stream is dead
const KEEP_DOWNLOAD = 10_000; // milliseconds for which a downloaded file stays in memory
const NO_SERVER = [502, 503, 504]; // HTTP statuses of a proxy that finds no server behind it
const UNREACHABLE = "The server cannot be reached. Your input is kept; try again in a moment.";
const LOGGED_OUT = "Your token is not accepted any more. Log in again; what you entered is kept.";

const refused = new Set();

// Calls `listener()` when the server does not accept the token.
export const onRefusedToken = (listener) => refused.add(listener);

// status: the HTTP status, or 0 if the server did not answer.
export class RequestError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  const used = token();
  const authorization = used ? { Authorization: `Bearer ${used}` } : {};
  let response;
  try {
    response = await fetch(`api${path}`, { ...options, headers: { ...authorization, ...options.headers }, cache: "no-cache" });
  } catch {
    if (!options.signal?.aborted) lost();
    throw new RequestError(UNREACHABLE, 0);
  }
  if (response.ok) {
    reached();
    return response;
  }
  let message = null;
  try {
    message = (await response.json()).error;
  } catch {
    // The body is not JSON.
  }
  if (!message && NO_SERVER.includes(response.status)) {
    lost();
    throw new RequestError(UNREACHABLE, 0);
  }
  reached();
  if (response.status === 401 && used === token()) {
    for (const listener of refused) listener();
    message = LOGGED_OUT;
  }
  throw new RequestError(message ?? `${response.status} ${response.statusText}`, response.status);
}

// Asks for the server alone.
export const probe = () => request("");

// Returns the answer to a request; without a network the last one, if it is kept.
export async function get(path) {
  const used = token();
  try {
    const text = await (await request(path)).text();
    const isCurrent = () => used === token();
    keepAnswer(path, used, text, isCurrent);
    if (path === "") forgetOthers(used, isCurrent).catch(() => {}); // the server has accepted this token
    return JSON.parse(text);
  } catch (error) {
    const found = error.status === 0 ? await keptAnswer(path, used) : null;
    if (!found) throw error;
    showsAnswerOf(found.time);
    return JSON.parse(found.text);
  }
}

export async function post(path, body) {
  const response = await request(path, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
  return response.json();
}

export const studyPath = (name) => `/studies/${encodeURIComponent(name)}`;

// Fetches a file with the token and saves it.
export async function download(path, defaultName) {
  const response = await request(path);
  const filename = response.headers.get("Content-Disposition")?.match(/filename="([^"]+)"/);
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = filename ? filename[1] : defaultName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEEP_DOWNLOAD);
}

// Calls `onChange(version)` whenever the study changes and `onState("live" | "lost")` when the connection opens or
// breaks. EventSource cannot send a token, so the stream is read with fetch. Returns a function that closes it.
export function watchStudy(name, onChange, onState) {
  const abort = new AbortController();
  (async () => {
    for (let wait = FIRST_WAIT; !abort.signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
      try {
        const response = await request(`${studyPath(name)}/live`, { signal: abort.signal });
        onState("live");
        wait = FIRST_WAIT;
        await readEvents(response, onChange);
      } catch (error) {
        if (abort.signal.aborted) return;
        if (error.status >= 400 && error.status < 500) return onState("lost");
      }
      onState("lost");
      await waitOrReconnect(wait);
    }
  })();
  return () => abort.abort();
}

// Waits, but not longer than until another request reaches the server.
function waitOrReconnect(milliseconds) {
  return new Promise((resolve) => {
    const done = () => { clearTimeout(timer); end(); resolve(); };
    const timer = setTimeout(done, milliseconds);
    const end = onReconnect(done);
  });
}

async function readEvents(response, onChange) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await withinTime(reader.read(), SILENCE, () => reader.cancel().catch(() => {}));
    if (done) return;
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data) onChange(JSON.parse(data.slice(6)).version);
    }
  }
}

// Returns what the promise returns, or gives up after some time: a lost network need not break a connection.
function withinTime(promise, milliseconds, giveUp) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => {
      reject(new RequestError("The server is silent.", 0));
      giveUp();
    }, milliseconds);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}
