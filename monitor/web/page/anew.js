"use strict";
// The page of a live run: fetched again periodically, changing only what differs.
const EVERY_MS = 5000;

async function anew() {
  if (document.hidden) return;
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.title = fresh.title;
  patchChildren(document.body, [...fresh.body.childNodes]);
  if (!fresh.body.dataset.live) clearInterval(timer);
}

const timer = setInterval(() => anew().catch(() => {}), EVERY_MS);
