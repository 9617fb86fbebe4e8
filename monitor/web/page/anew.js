"use strict";
// The page of a run: fetched again, periodically while the run is live, or for another span of its time;
// only what differs is changed.
const EVERY_MS = 5000;

let seen = new WeakMap();

function looksOf(chart) {
  if (!seen.has(chart)) seen.set(chart, [...chart.querySelectorAll(".at")].map(lookIn));
  return seen.get(chart);
}

function lookIn(part) {
  const { x, width } = part.lastChild.getBBox();
  const whole = part.ownerSVGElement.viewBox.baseVal.width;
  return [x / whole, (x + width) / whole, part.firstChild.textContent];
}

function zoom(from, to) {
  const address = new URL(location.href);
  address.searchParams.set("from", Math.max(0, from).toFixed(2));
  address.searchParams.set("to", to.toFixed(2));
  history.pushState(null, "", address);
  anew();
}

// Only a page with a script may be stepped through by keys: without one they would do nothing.
const reachable = () => { for (const chart of document.querySelectorAll("svg.chart")) if (chart.querySelector(".at")) chart.tabIndex = 0; };

// Without an answer the page says itself that it stands still.
async function anew() {
  const asked = location.href;
  const answer = await fetch(asked).catch(() => null);
  document.documentElement.classList.toggle("stale", !(answer && answer.ok));
  if (!answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (location.href !== asked) return;
  document.title = fresh.title;
  patchChildren(document.body, [...fresh.body.childNodes]);
  seen = new WeakMap();
  reachable();
  again();
  if (fresh.body.dataset.live) document.body.dataset.live = "";
  else delete document.body.dataset.live;
}

addEventListener("DOMContentLoaded", reachable); // this script stands in the head
addEventListener("popstate", anew);
setInterval(() => { if (!document.hidden && document.body.dataset.live !== undefined) anew(); }, EVERY_MS);
