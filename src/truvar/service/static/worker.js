// Service worker: keeps the page and what it last showed, so that it can be opened again without a network. The network
// comes first, so that nothing is older than it must be. Browsers allow it over HTTPS and on the server's own machine.

const PAGE = "truvar-page"; // cache of the files of the page
const ANSWERS = "truvar-answers"; // cache of answers of the server
const MOST_ANSWERS = 40; // the oldest beyond are removed
const KEPT = /^api(\/studies(\/.+\/view)?)?$/; // answers that the page begins with

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const scope = new URL(self.registration.scope);
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== scope.origin || !url.pathname.startsWith(scope.pathname)) return;
  const path = url.pathname.slice(scope.pathname.length);
  if (path === "" || path.startsWith("page/")) event.respondWith(networkFirst(request, PAGE, url.href));
  else if (KEPT.test(path)) event.respondWith(answerKey(request).then((key) => networkFirst(request, ANSWERS, key)));
});

// The key of an answer depends on the token: without it, what is kept is not found.
async function answerKey(request) {
  const token = new TextEncoder().encode(request.headers.get("Authorization") ?? "");
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", token));
  const name = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${request.url}?kept-for=${name}`;
}

async function networkFirst(request, name, key) {
  const cache = await caches.open(name);
  try {
    const response = await fetch(request);
    if (response.ok) await keep(cache, key, response.clone(), name);
    return response;
  } catch (error) {
    const kept = await cache.match(key);
    if (kept) return kept;
    throw error;
  }
}

async function keep(cache, key, response, name) {
  try {
    await cache.delete(key); // so that the order of the keys is that of their use
    await cache.put(key, response);
    if (name !== ANSWERS) return;
    const keys = await cache.keys();
    await Promise.all(keys.slice(0, Math.max(0, keys.length - MOST_ANSWERS)).map((old) => cache.delete(old)));
  } catch {
    // The storage is full: the page works as before, with a network.
  }
}
