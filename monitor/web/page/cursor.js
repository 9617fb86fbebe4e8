"use strict";
// What the charts say where one points: a line through all charts of the same time, and a box with their values.
// Arrow keys move it. A span of a chart that says its seconds (data-from, data-to) is chosen by dragging.
// The page offers `looksOf(chart)`: parts of its width, each [left, right, text], and `zoom(from, to)`.
const box = document.createElement("div");
const chosen = document.createElement("div");
const lines = new Map();
let pointed = null;
let grabbed = null;
box.className = "look";
box.setAttribute("role", "status");
chosen.className = "chosen";
document.documentElement.classList.add("scripted");
document.documentElement.append(box, chosen);

const lookAt = (chart, at) => looksOf(chart).find(([left, right]) => left <= at && at <= right);
const within = (chart, x) => { const { left, width } = chart.getBoundingClientRect(); return Math.min(1, Math.max(0, (x - left) / width)); };

function inView(chart) {
  const { top, bottom, height } = chart.getBoundingClientRect();
  return height > 0 && bottom > 0 && top < innerHeight;
}

function place(element, left, top, width, height) {
  Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`, display: "block" });
}

function look(chart, at) {
  const own = lookAt(chart, at);
  if (!own) return hide();
  pointed = { chart, at };
  const others = [...document.querySelectorAll("svg.chart[data-from]")].filter((one) => one !== chart && one.dataset.from === chart.dataset.from && inView(one));
  const told = others.map((one) => lookAt(one, at)).filter(Boolean).map(([, , text]) => text.split("\n").slice(1).join("\n"));
  box.replaceChildren(...[own[2], ...told].filter(Boolean).map((text) => Object.assign(document.createElement("p"), { textContent: text })));
  for (const [one, line] of lines) if (one !== chart && !others.includes(one)) { line.remove(); lines.delete(one); }
  for (const one of [chart, ...others]) ruled(one, at);
  const { left, top, width } = chart.getBoundingClientRect();
  box.style.display = "block";
  const x = left + at * width;
  box.style.left = `${x + 14 + box.offsetWidth > innerWidth ? Math.max(4, x - 14 - box.offsetWidth) : x + 14}px`;
  box.style.top = `${Math.max(4, Math.min(top + 12, innerHeight - box.offsetHeight - 4))}px`;
  return undefined;
}

function ruled(chart, at) {
  if (!lines.has(chart)) lines.set(chart, document.documentElement.appendChild(Object.assign(document.createElement("div"), { className: "cursor" })));
  const { left, top, width, height } = chart.getBoundingClientRect();
  place(lines.get(chart), left + at * width, top, 1, height);
}

function hide() {
  pointed = null;
  for (const line of lines.values()) line.remove();
  lines.clear();
  box.style.display = "none";
}

function leave() {
  hide();
  grabbed = null;
  chosen.style.display = "none";
}

// What moved below the pointer is another moment, or another chart.
function again() {
  if (pointed && pointed.chart.isConnected) look(pointed.chart, pointed.at);
  else leave();
}

function drag(at) {
  const { left, top, width, height } = grabbed.chart.getBoundingClientRect();
  const [from, to] = [grabbed.at, at].sort((a, b) => a - b);
  place(chosen, left + from * width, top, (to - from) * width, height);
}

const LEAST_DRAG = 0.02;

function drop(at) {
  const { chart, at: began } = grabbed;
  leave();
  if (Math.abs(at - began) >= LEAST_DRAG) zoomTo(chart, began, at);
}

function zoomTo(chart, one, other) {
  const [from, to] = [Number(chart.dataset.from), Number(chart.dataset.to)];
  const [left, right] = [one, other].sort((a, b) => a - b);
  zoom(from + left * (to - from), from + right * (to - from));
}

const SAME = 1e-6;

// To the next place by its middle: places overlap where steps are shaded.
function step(chart, by) {
  const middles = looksOf(chart).map(([left, right]) => (left + right) / 2).sort((a, b) => a - b);
  const here = Number.isFinite(by) && pointed && pointed.chart === chart ? pointed.at : by === 1 || by === -Infinity ? -1 : 2;
  const next = here < 0 || by === 1 ? middles.find((one) => one > here + SAME) : middles.reverse().find((one) => one < here - SAME);
  if (next !== undefined) look(chart, next);
}

const MOVES = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
const ZOOMS = { "+": 0.25, "-": 1 };

document.addEventListener("pointermove", (event) => {
  const chart = grabbed ? grabbed.chart : event.target.closest && event.target.closest("svg.chart");
  if (!chart) return pointed && document.activeElement !== pointed.chart ? leave() : undefined;
  const at = within(chart, event.clientX);
  if (grabbed && !event.buttons) return leave(); // let go outside the window
  if (grabbed) drag(at);
  return look(chart, at);
});
document.addEventListener("pointerdown", (event) => {
  const chart = event.button === 0 && event.target.closest && event.target.closest("svg.chart[data-from]");
  if (!chart) return;
  event.preventDefault();
  grabbed = { chart, at: within(chart, event.clientX) };
});
document.addEventListener("pointerup", (event) => { if (grabbed) drop(within(grabbed.chart, event.clientX)); });
document.addEventListener("pointercancel", leave);
document.addEventListener("keydown", (event) => {
  const chart = event.target.closest && event.target.closest("svg.chart");
  if (event.key === "Escape") return leave();
  if (!chart || event.ctrlKey || event.metaKey || event.altKey) return undefined;
  if (event.key in MOVES) { event.preventDefault(); return step(chart, MOVES[event.key]); }
  if (!(event.key in ZOOMS) || chart.dataset.from === undefined) return undefined;
  const at = pointed && pointed.chart === chart ? pointed.at : 0.5;
  return zoomTo(chart, at - ZOOMS[event.key], at + ZOOMS[event.key]);
});
document.addEventListener("focusout", leave);
addEventListener("scroll", again, { passive: true });
addEventListener("resize", again);
