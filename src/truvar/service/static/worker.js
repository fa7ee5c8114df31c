// Service worker: keeps the files of the page, so that it opens without a network after a single visit. The server puts
// VERSION and FILES before these lines; another version replaces what an earlier one kept. The contents of the page are kept by
// the page itself (kept-answers.js), which knows who is logged in. Browsers allow workers over HTTPS and on the server's
// own machine.

/* global VERSION, FILES */
const SCOPE = new URL(self.registration.scope); // one machine may serve several stores under several paths
const PREFIX = `truvar-page:${SCOPE.pathname}:`;
const CACHE = PREFIX + VERSION;
const FORMER = ["truvar-page", "truvar-answers"]; // caches of release 0.2.0
const PATIENCE = 5_000; // milliseconds that a weak network may take for a file that is kept

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(activate()));

async function install() {
  const cache = await caches.open(CACHE);
  await cache.addAll(FILES.map((file) => new Request(new URL(file, SCOPE), { cache: "reload" })));
  await self.skipWaiting();
}

async function activate() {
  const names = await caches.keys();
  const isOld = (name) => FORMER.includes(name) || (name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(names.filter(isOld).map((name) => caches.delete(name)));
  await self.clients.claim();
}

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== SCOPE.origin || !url.pathname.startsWith(SCOPE.pathname)) return;
  const path = url.pathname.slice(SCOPE.pathname.length);
  if (path === "" || path.startsWith("page/")) event.respondWith(pageFile(event.request, url.origin + url.pathname));
});

// The network comes first, so that the page is the server's own. A proxy that finds no server behind it counts as none,
// as does the page of a network that wants a login.
async function pageFile(request, key) {
  const kept = await (await caches.open(CACHE)).match(key);
  if (!kept) return fetch(request);
  let timer;
  const waited = new Promise((resolve) => { timer = setTimeout(resolve, PATIENCE, kept); });
  const fetched = fetch(request).then((response) => (response.ok && !response.redirected ? response : kept), () => kept);
  return Promise.race([fetched, waited]).finally(() => clearTimeout(timer));
}
