// Requests to the server, with the access token, and the stream of changes.

const TOKEN_KEY = "truvar-token"; // in the session storage
const FIRST_WAIT = 1000; // milliseconds before the first attempt to connect again
const LONGEST_WAIT = 20_000; // milliseconds between two attempts
const SILENCE = 40_000; // milliseconds without a sign of life, of which one is due every 14 s, after which a stream is dead
const KEEP_DOWNLOAD = 10_000; // milliseconds for which a downloaded file stays in memory

// A token can be given behind the # of the address. Browsers do not send that part; it is removed at once.
export function takeTokenFromAddress() {
  const match = location.hash.match(/[#&]token=([^&]+)/);
  if (!match) return;
  setToken(decodeURIComponent(match[1]));
  history.replaceState(null, "", location.pathname + location.hash.replace(/[#&]?token=[^&]+/, "").replace(/^$/, "#/"));
}

export const setToken = (token) => sessionStorage.setItem(TOKEN_KEY, token);

function authorization() {
  const token = sessionStorage.getItem(TOKEN_KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

// status: the HTTP status, or 0 if the server did not answer.
export class RequestError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  let response;
  try {
    response = await fetch(`api${path}`, { ...options, headers: { ...authorization(), ...options.headers }, cache: "no-cache" });
  } catch {
    throw new RequestError("The server cannot be reached. Your input is kept; try again in a moment.", 0);
  }
  if (response.ok) return response;
  let message = `${response.status} ${response.statusText}`;
  try {
    message = (await response.json()).error ?? message;
  } catch {
    // The body is not JSON; the status is the message.
  }
  throw new RequestError(message, response.status);
}

export const get = async (path) => (await request(path)).json();

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
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  })();
  return () => abort.abort();
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
