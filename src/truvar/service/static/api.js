// The way to the server: requests with the token, and the stream of changes.

const KEY = "truvar-token";

// A token may come behind the # of the address: browsers do not send that part, and it is removed at once.
export function adoptToken() {
  const found = location.hash.match(/[#&]token=([^&]+)/);
  if (!found) return;
  sessionStorage.setItem(KEY, decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname + location.hash.replace(/[#&]?token=[^&]+/, "").replace(/^$/, "#/"));
}

export const setToken = (token) => sessionStorage.setItem(KEY, token);

function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function request(path, options = {}) {
  let answer;
  try {
    answer = await fetch(`/api${path}`, { ...options, headers: { ...headers(), ...options.headers }, cache: "no-cache" });
  } catch {
    throw new Refused("The server cannot be reached; nothing was lost here, so try again in a moment.", 0);
  }
  if (answer.ok) return answer;
  let message = `${answer.status} ${answer.statusText}`;
  try {
    message = (await answer.json()).error ?? message;
  } catch {
    // no JSON: the status must do
  }
  throw new Refused(message, answer.status);
}

export const get = async (path) => (await request(path)).json();
export const getText = async (path) => (await request(path)).text();

export async function post(path, body) {
  const answer = await request(path, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
  });
  return answer.json();
}

export const of = (name) => `/studies/${encodeURIComponent(name)}`;

// Fetched with the token, then saved as a file.
export async function download(path, fallback) {
  const answer = await request(path);
  const named = answer.headers.get("Content-Disposition")?.match(/filename="([^"]+)"/);
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = named ? named[1] : fallback;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// Calls `changed(version)` whenever the study changes and `state("live" | "lost")` as the connection comes and goes.
// EventSource cannot send a token, so the stream is read by hand. Returns what stops it.
export function live(name, changed, state) {
  const stop = new AbortController();
  (async () => {
    for (let wait = 1000; !stop.signal.aborted; wait = Math.min(2 * wait, 20_000)) {
      try {
        const answer = await request(`${of(name)}/live`, { signal: stop.signal });
        state("live");
        wait = 1000;
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = ""; ;) {
          const { value, done } = await reader.read();
          if (done) break;
          const events = (text + value).split("\n\n");
          text = events.pop();
          for (const event of events) {
            const data = event.split("\n").find((line) => line.startsWith("data: "));
            if (data) changed(JSON.parse(data.slice(6)).version);
          }
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error.status >= 400 && error.status < 500) return state("lost");
      }
      state("lost");
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  })();
  return () => stop.abort();
}
