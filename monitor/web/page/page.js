"use strict";
// Draws each snapshot from one stream. Text is inserted as text, never as markup. The daemon works out what is
// shown (monitor/model/facts.py); units.js turns numbers into text.
// Points kept per chart, findings shown before "all", ended runs shown, and a chart's headroom above its data.
const KEEP = 300;
const FINDINGS = 4;
const LAST_RUNS = 4;
const HEADROOM = 1.05;
// Points so many times further apart than usual have a gap between them.
const GAP = 5;
const FILTER_FROM = 7;
// Of more runs than these each is shown briefly, so that all are in view.
const FULL_RUNS = 6;
const PHASES = { data: "p0", transfer: "p1", forward: "p2", backward: "p3", optimizer: "p4", validate: "p5", checkpoint: "p6", log: "p7" };
const WORST = ["stalled", "failed", "killed", "critical", "starved", "warning", "running", "ended"];
const GPU_WORST = ["lost", "hung", "error", "stalled", "starved", "throttled", "part_busy", "in_use", "busy", "mig", "unknown", "idle"];
const WHEN = { stalled: (span) => `the ${span} before it hung` };
const past = new Map();
let newest = null;
let received = 0;
let wanted = "";

const byId = (id) => document.getElementById(id);

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (typeof child === "string" ? said(child) : child)));
  return element;
}

const keyed = (key, element) => {
  element.dataset.key = key;
  return element;
};

// ── Pieces ──

function link(address, ...children) {
  const element = make("a", "", ...children);
  element.href = address;
  return element;
}

const runAddress = (run) => `/runs/${encodeURIComponent(run)}`;

function copyButton(text) {
  const button = make("button", "copy", word("copy"));
  button.type = "button";
  button.dataset.copy = text;
  return button;
}

function code(text) {
  const lines = make("code");
  for (const line of text.split("\n")) lines.append(make("span", line[0] === "+" ? "add" : line[0] === "-" ? "cut" : "", `${line}\n`));
  const box = make("pre", "", lines);
  box.tabIndex = 0;
  return make("div", "code", box, copyButton(text));
}

// A sentence with `code` between backticks.
function prose(text) {
  const pieces = text.split("`");
  return pieces.length % 2 ? pieces.map((piece, at) => (at % 2 ? make("code", "", piece) : piece)).filter((piece) => piece !== "") : [text];
}

function remember(key, time, value) {
  const points = past.get(key) || [];
  if (!absent(value) && (!points.length || points[points.length - 1][0] < time)) points.push([time, value]);
  past.set(key, points.slice(-KEEP));
}

// Points without a gap between them: where nobody read anything, nothing is drawn.
function unbroken(points) {
  const apart = points.slice(1).map((point, at) => point[0] - points[at][0]).sort((a, b) => a - b);
  const most = apart[apart.length >> 1] * GAP;
  const parts = [[points[0]]];
  for (const point of points.slice(1)) {
    const part = parts[parts.length - 1];
    if (point[0] - part[part.length - 1][0] > most) parts.push([point]);
    else part.push(point);
  }
  return parts;
}

// A line over a fixed range, so that small changes do not look like swings.
function chart(key, points, top, caption, when = (span) => `last ${span}`) {
  const box = make("div");
  if (points.length < 2 || !top) return box;
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  svg.setAttribute("class", "chart");
  svg.dataset.of = key;
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", word(caption));
  const first = points[0][0];
  const width = points[points.length - 1][0] - first || 1;
  const x = (time) => (((time - first) / width) * 100).toFixed(2);
  const parts = unbroken(points).map((part) => [x(part[0][0]), part.map(([time, value]) => `${x(time)},${(40 - Math.min(value / top, 1) * 38).toFixed(2)}`).join("L"), x(part[part.length - 1][0])]);
  const areas = parts.map(([begin, line, end]) => `M${begin},40L${line}L${end},40Z`).join("");
  for (const [kind, d] of [["base", "M0,40H100"], ["area", areas], ["line", parts.map(([, line]) => `M${line}`).join("")]]) {
    const path = document.createElementNS(name, "path");
    path.setAttribute("class", kind);
    path.setAttribute("d", d);
    svg.append(path);
  }
  box.append(svg, make("div", "caption", `${word(caption)}, ${said(when(duration(width)))}`));
  return box;
}

const speeds = (run) => run.timeline.filter((part) => part.samples_per_second).map((part) => [part.start, part.samples_per_second]);

// For cursor.js: each point holds from half-way to its neighbours.
function looksOf(chart) {
  const [kind, ...rest] = chart.dataset.of.split(":");
  const run = kind === "run" ? newest.runs.find((one) => one.id === rest.join(":")) : null;
  const points = kind === "run" ? (run ? speeds(run) : []) : past.get(chart.dataset.of) || [];
  const text = kind === "run" ? (value) => `${number(value)} samples/s` : percent;
  const first = points.length ? points[0][0] : 0;
  const width = points.length ? points[points.length - 1][0] - first || 1 : 1;
  const edge = (a, b) => ((a[0] + b[0]) / 2 - first) / width;
  return points.map((point, at) => [at ? edge(points[at - 1], point) : 0, at < points.length - 1 ? edge(point, points[at + 1]) : 1, `${new Date(point[0] * 1000).toLocaleTimeString()}\n${said(text(point[1]))}`]);
}

function meter(ratio, label) {
  if (absent(ratio)) return null;
  const fill = make("i");
  fill.style.width = `${Math.min(ratio, 1) * 100}%`;
  const bar = make("div", "bar meter", fill);
  bar.setAttribute("role", "meter");
  bar.setAttribute("aria-label", label);
  bar.setAttribute("aria-valuemin", 0);
  bar.setAttribute("aria-valuemax", 100);
  bar.setAttribute("aria-valuenow", Math.round(ratio * 100));
  return bar;
}

const figure = (name, text) => (text === ABSENT || text === null ? null : make("span", "", `${word(name)} `, make("b", "", text)));

function phaseBar(phases, brief) {
  const bar = make("div", "bar");
  const legend = make("div", "legend");
  for (const phase of [...phases].sort((a, b) => b.share - a.share)) {
    if (!visible(phase.share)) continue;
    const kind = PHASES[phase.name] || "p8";
    const part = make("i", kind);
    part.style.width = `${phase.share * 100}%`;
    part.title = said(`${word(phase.name)}: ${percent(phase.share)}, ${seconds(phase.mean_seconds)} a step`);
    bar.append(part);
    legend.append(make("span", "", make("i", kind), `${word(phase.name)} ${percent(phase.share)}`));
  }
  return make("div", "", bar, brief ? null : legend);
}

// ── Cards ──

function findingCard(finding) {
  const card = make("article", `card ${finding.severity}`);
  const gain = finding.speedup ? make("span", "gain", gainRange(finding.speedup.low, finding.speedup.likely, finding.speedup.high)) : null;
  const subject = finding.run ? link(runAddress(finding.run), finding.subject) : finding.subject;
  const unverified = finding.speedup && finding.speedup.verified_on === "none";
  const about = gain ? word(unverified ? "predicted, unverified on a GPU" : "predicted") : finding.live ? null : word("ended; for the next run");
  card.append(make("div", "row", make("b", "", subject), gain, about && make("span", "dim", about), make("span", "dim end", finding.id)), make("h3", "", ...prose(finding.title)));
  if (finding.remedy && finding.remedy.summary) card.append(make("p", "", ...prose(finding.remedy.summary)));
  if (finding.remedy && finding.remedy.change) card.append(code(finding.remedy.change));
  return keyed([finding.id, finding.run, finding.rank, finding.gpu].join("|"), card);
}

// `brief`: without its curve and the legend of its bar.
function runCard(run, brief) {
  const tone = run.state === "running" ? "good end" : run.state === "ended" ? "dim end" : "bad end";
  const hung = run.state === "stalled" && run.current;
  const state = make("span", tone, hung ? `hung for ${duration(run.current.seconds)}` : `${word(run.state)}, ${duration(run.elapsed_seconds)}`);
  const card = make("article", run.live && run.state !== "stalled" ? "card" : "card still", make("div", "row", make("h3", "", link(runAddress(run.id), run.name)), state));
  const newestLoss = run.ranks.map((rank) => rank.loss).find((loss) => !absent(loss));
  const more = [figure("step", seconds(run.step.p50)), figure("p95", seconds(run.step.p95)), figure("starved", percent(run.starved_ratio)), figure("loss", number(newestLoss)), figure("ranks", run.ranks.length > 1 ? whole(run.ranks.length) : null)];
  card.append(make("div", "figures",
    figure("steps", whole(run.steps)), figure("", run.iterations_per_second ? `${number(run.iterations_per_second)} it/s` : null),
    figure("", run.samples_per_second ? `${number(run.samples_per_second)} samples/s` : null), ...(brief ? [] : more)));
  if (run.phases.length) card.append(phaseBar(run.phases, brief));
  if (hung) card.append(make("p", "bad", `rank ${run.current.rank} has been in ${run.current.phase} for ${duration(run.current.seconds)}`));
  if (brief) return keyed(run.id, card);
  const speed = speeds(run);
  card.append(chart(`run:${run.id}`, speed, Math.max(...speed.map((point) => point[1]), 0) * HEADROOM, "samples/s from 0", WHEN[run.condition] || (run.live ? undefined : (span) => `the whole ${span}`)));
  return keyed(run.id, card);
}

// The rules, not this page, judge whether use is too low: a GPU is marked when they say so.
function gpuCard(gpu, sameName) {
  const name = make("span", "dim short", gpu.name || gpu.uuid);
  name.title = name.textContent;
  const label = make("div", "row whole", make("h3", "", `GPU ${gpu.index}`), sameName ? null : name);
  if (gpu.state !== "ok") {
    return keyed(gpu.uuid, make("article", "card critical", label, make("p", "bad", `${gpu.state} for ${duration(gpu.age_seconds)}: ${gpu.state_detail || "no detail"}`)));
  }
  const card = make("article", gpu.alarm ? `card ${gpu.alarm.severity}` : "card", label);
  const runs = make("span", "dim short", gpu.run_labels.join(", ") || "no run");
  runs.title = runs.textContent;
  card.append(make("div", "row whole", make("span", "big", percent(gpu.utilization_ratio)), runs));
  if (gpu.alarm) card.append(make("div", "warn", gpu.alarm.id));
  card.append(chart(`gpu:${gpu.uuid}`, past.get(`gpu:${gpu.uuid}`) || [], 1, "use"));
  card.append(make("div", "figures small", figure("memory", of(gpu.memory_used_bytes, gpu.memory_total_bytes))));
  const bar = meter(gpu.memory_used_ratio, `memory of GPU ${gpu.index}`);
  if (bar) card.append(bar);
  card.append(make("div", "figures small",
    figure("", watts(gpu.power_watts, gpu.power_limit_watts)), figure("", celsius(gpu.temperature_celsius)), figure("", hertz(gpu.sm_clock_hertz)),
    figure("SM", percent(gpu.activity.sm_active_ratio)), figure("tensor", percent(gpu.activity.tensor_active_ratio))));
  if (gpu.throttled_by.length) card.append(make("p", "warn", `throttled: ${gpu.throttled_by.join(", ")}`));
  return keyed(gpu.uuid, card);
}

function hostCard(host) {
  const card = make("article", "card");
  const row = make("div", "figures");
  if (host.cpu) row.append(...[figure("CPU", `${percent(host.cpu.utilization_ratio)} of ${host.cpu.cores} cores`), figure("I/O wait", percent(host.cpu.iowait_ratio)), figure("load", number(host.cpu.load_1m))].filter(Boolean));
  if (host.memory) row.append(figure("memory", of(host.memory.used_bytes, host.memory.total_bytes)));
  for (const disk of host.disks) if (visible(disk.busy_ratio)) row.append(figure(disk.name, `${percent(disk.busy_ratio)} busy, ${rate(disk.read_bytes_per_second)} read`));
  card.append(row, chart("host", past.get("host") || [], 1, "CPU, 0–100 %"));
  return keyed("host", card);
}

function emptyCard() {
  return keyed("empty", make("article", "card", make("h3", "", "No training has been seen yet"), make("p", "", "Start one under gpumon; nothing in the script changes:"), code("gpumon run -- python train.py")));
}

// ── The page ──

function wallTexts(wall) {
  return [
    wall.gpu_count ? `${wall.gpus_working} of ${wall.gpu_count} GPUs working` : null,
    wall.gpus_starved ? `${wall.gpus_starved} starved` : null,
    wall.gpus_lost ? `${wall.gpus_lost} not answering` : null,
    visible(wall.gpus_to_gain) ? `${tenths(wall.gpus_to_gain)} GPUs' worth to gain` : null,
    wall.live_runs ? `${wall.live_runs} live ${wall.live_runs === 1 ? "run" : "runs"}` : "no live run",
    wall.runs_hung ? `${wall.runs_hung} hung` : null,
    wall.runs_crashed ? `${wall.runs_crashed} crashed` : null,
  ].filter(Boolean);
}

// `rest` is a click away.
function section(id, title, kind, cards, rest = [], what = "more") {
  const more = rest.length ? make("details", "", make("summary", "", `and ${rest.length} ${what}`), make("div", kind, ...rest)) : null;
  patchChildren(byId(id), cards.length || more ? [make("h2", "", word(title)), make("div", kind, ...cards), more].filter(Boolean) : []);
}

const idle = (gpu) => gpu.condition === "idle";
const order = (list) => (word) => (list.indexOf(word) + list.length) % list.length;
const matches = (...texts) => !wanted || texts.some((text) => (text || "").toLowerCase().includes(wanted));

function draw(snapshot) {
  const live = snapshot.runs.filter((run) => run.live || (!run.superseded && (run.state === "failed" || run.state === "killed")));
  const shown = live.length ? live : snapshot.runs.slice(0, LAST_RUNS);
  const ids = new Set(shown.map((run) => run.id));
  const rank = order(WORST);
  const runs = shown.filter((run) => matches(run.name, run.user, run.id, run.state)).sort((a, b) => rank(a.condition) - rank(b.condition));
  const state = order(GPU_WORST);
  const gpus = snapshot.gpus.filter((gpu) => matches(gpu.name, String(gpu.index), ...gpu.run_labels)).sort((a, b) => state(a.condition) - state(b.condition) || a.index - b.index);
  // Findings about a run that has been rerun since are out of date.
  const leads = snapshot.groups.map((group) => ({ ...snapshot.findings[group.findings[0]], title: group.title, subject: group.subject, speedup: group.speedup }));
  const findings = leads.filter((one) => (absent(one.run) || ids.has(one.run)) && matches(one.subject, one.title, one.id));
  byId("host").textContent = snapshot.host.hostname;
  byId("simulated").hidden = snapshot.source.kind !== "simulated";
  const trouble = snapshot.source.kind === "none" || !snapshot.source.ok ? `No GPU readings: ${snapshot.source.detail || "no reason given"}` : "";
  byId("trouble").textContent = said(trouble);
  byId("trouble").hidden = !trouble;
  byId("filter").hidden = !wanted && snapshot.runs.length + snapshot.gpus.length < FILTER_FROM;
  const texts = wallTexts(snapshot.wall).map(said);
  patchChildren(byId("wall"), texts.map((text) => make("span", "", text)));
  document.title = `${texts.join(" · ")} · ${snapshot.host.hostname} · gpumon`;
  section("findings", "What to change", "cards wide", findings.slice(0, FINDINGS).map(findingCard), findings.slice(FINDINGS).map(findingCard));
  section("runs", live.length ? "Runs" : "Last runs", runs.length > FULL_RUNS ? "cards" : "cards wide", snapshot.runs.length ? runs.map((run) => runCard(run, runs.length > FULL_RUNS)) : [emptyCard()]);
  const names = new Set(snapshot.gpus.map((gpu) => gpu.name));
  const card = (gpu) => gpuCard(gpu, names.size === 1);
  const title = ["GPUs", names.size === 1 ? [...names][0] : null, snapshot.source.kind === "simulated" && ![...names].join().includes("simulated") ? "simulated" : null];
  section("gpus", title.filter(Boolean).join(" · "), "cards", gpus.filter((gpu) => !idle(gpu)).map(card), gpus.filter(idle).map(card), "idle");
  section("machine", "Host", "cards wide", [hostCard(snapshot.host)]);
  again();
}

function take(snapshot) {
  newest = snapshot;
  received = performance.now();
  for (const gpu of snapshot.gpus) if (gpu.state === "ok") remember(`gpu:${gpu.uuid}`, snapshot.time, gpu.utilization_ratio);
  if (snapshot.host.cpu) remember("host", snapshot.time, snapshot.host.cpu.utilization_ratio);
  if (!document.hidden) draw(snapshot);
  mark();
}

function mark() {
  const state = byId("state");
  const age = (performance.now() - received) / 1000;
  const stale = !newest || age > newest.stale_after_seconds;
  const kind = stale ? "badge stale" : "badge live";
  const text = said(!newest ? "no data yet" : stale ? `stale: last data ${duration(age)} ago` : `live, every ${seconds(newest.interval_seconds)}`);
  if (state.className !== kind) state.className = kind;
  if (state.textContent !== text) state.textContent = text;
  document.body.classList.toggle("stale", Boolean(newest) && stale);
  if (newest && stale && !document.title.startsWith("stale")) document.title = `stale · ${document.title}`;
}

// Readings from before this page was opened, if the daemon keeps history.
async function recall() {
  const answer = await fetch(`/api/v1/history?from=${Date.now() / 1000 - 600}&points=200`);
  if (!answer.ok) return;
  for (const series of (await answer.json()).series) {
    const key = series.subject === "host" && series.field === "cpu_utilization_ratio" ? "host" : series.field === "utilization_ratio" ? series.subject : null;
    if (key) past.set(key, series.time.map((time, index) => [time, series.mean[index]]));
  }
}

function follow() {
  const source = new EventSource(`/api/v1/stream?lang=${document.documentElement.lang}`);
  source.onmessage = (event) => take(JSON.parse(event.data));
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    // Without https there is no clipboard: select the text, so that one key copies it.
    getSelection().selectAllChildren(button.previousSibling);
    return;
  }
  button.classList.add("done");
  setTimeout(() => button.classList.remove("done"), 1500);
}

document.addEventListener("click", (event) => { if (event.target.dataset && event.target.dataset.copy) copy(event.target); });
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" && event.key !== "Escape") return;
  if (event.key === "/") { byId("filter").hidden = false; byId("filter").focus(); event.preventDefault(); }
  if (event.key === "Escape") { byId("filter").value = wanted = ""; byId("filter").blur(); if (newest) draw(newest); }
  if (event.key === "r") location.assign("/runs");
});
byId("filter").addEventListener("input", (event) => { wanted = event.target.value.trim().toLowerCase(); if (newest) draw(newest); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && newest) draw(newest); });
setInterval(mark, 1000);
recall().catch(() => {}).finally(follow);
