// The last answers of the server, for the time without a network. The key of an answer depends on the token, so that what
// is kept for one person is not found by another; logging out removes all. Browsers keep nothing over plain HTTP.

const PREFIX = `truvar-answers:${location.pathname}`; // one machine may serve several stores under several paths
const OVERVIEW = /^(\/studies(\/.+\/view)?)?$/; // answers that the page begins with
const MOST = 30; // answers in each of the two caches; the oldest beyond are removed
const TIME = "X-Kept-At"; // header with the time at which an answer came

const cacheName = (path) => `${PREFIX}:${OVERVIEW.test(path) ? "overview" : "details"}`;
const isPossible = () => "caches" in window && Boolean(crypto.subtle);

async function keyOf(path, token) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
  const name = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return new URL(`kept/${name}/api${path}`, location.origin + location.pathname).href;
}

// `isCurrent()` says whether the token is still in use: an answer may come after its user has logged out.
export async function keepAnswer(path, token, text, isCurrent) {
  if (!isPossible()) return;
  try {
    const key = await keyOf(path, token);
    if (!isCurrent()) return;
    const cache = await caches.open(cacheName(path));
    await cache.delete(key); // so that the order of the keys is that of their use
    await cache.put(key, new Response(text, { headers: { [TIME]: new Date().toISOString() } }));
    const keys = await cache.keys();
    await Promise.all(keys.slice(0, Math.max(0, keys.length - MOST)).map((old) => cache.delete(old)));
  } catch {
    // The storage is full: the page works as before, with a network.
  }
  if (!isCurrent()) await forgetAnswers(); // the cache was opened again while its user logged out
}

// The last answer to a request of this token: {text, time}, or null.
export async function keptAnswer(path, token) {
  if (!isPossible()) return null;
  try {
    const cache = await caches.open(cacheName(path));
    const found = await cache.match(await keyOf(path, token));
    return found ? { text: await found.text(), time: found.headers.get(TIME) } : null;
  } catch {
    return null;
  }
}

// Whether something is kept for anybody.
export async function hasAnswers() {
  return isPossible() && caches.has(cacheName(""));
}

// Removes the answers to other tokens than this one, which the server has accepted.
export async function forgetOthers(token, isCurrent) {
  if (!isPossible()) return;
  const own = await keyOf("", token);
  if (!isCurrent()) return;
  for (const path of ["", "/details"]) {
    const cache = await caches.open(cacheName(path));
    const others = (await cache.keys()).filter((request) => !request.url.startsWith(own));
    await Promise.all(others.map((request) => cache.delete(request)));
  }
  if (!isCurrent()) await forgetAnswers();
}

export async function forgetAnswers() {
  if (!isPossible()) return;
  await Promise.all(["", "/details"].map((path) => caches.delete(cacheName(path))));
}
