"use strict";
// One stream in, one snapshot drawn. Every text goes in as text, never as markup.
const KEEP = 300;
const PHASES = { data: "p0", transfer: "p1", forward: "p2", backward: "p3", optimizer: "p4", validate: "p5", checkpoint: "p6", log: "p7" };
const past = new Map();
let newest = null;
let received = 0;

const byId = (id) => document.getElementById(id);

function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const absent = (value) => value === null || value === undefined;
const percent = (ratio) => (absent(ratio) ? "—" : `${Math.round(ratio * 100)} %`);
const count = (value) => (absent(value) ? "—" : value >= 100 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3)));
const whole = (value, unit) => (absent(value) ? "—" : `${Math.round(value)} ${unit}`);

function size(bytes) {
  if (absent(bytes)) return "—";
  let value = bytes;
  for (const unit of ["B", "KiB", "MiB"]) {
    if (Math.abs(value) < 1024) return `${Math.round(value)} ${unit}`;
    value /= 1024;
  }
  return value < 1024 ? `${value.toFixed(1)} GiB` : `${(value / 1024).toFixed(1)} TiB`;
}

function span(seconds) {
  if (absent(seconds)) return "—";
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${+(seconds * 1e3).toPrecision(3)} ms`;
  if (seconds < 120) return `${+seconds.toPrecision(3)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function remember(key, time, value) {
  const points = past.get(key) || [];
  if (!absent(value) && (!points.length || points[points.length - 1][0] < time)) points.push([time, value]);
  past.set(key, points.slice(-KEEP));
}

// A line over a fixed range: what looks like a swing is one.
function chart(points, top, caption) {
  const box = make("div");
  if (points.length < 2 || !top) return box;
  const name = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(name, "svg");
  svg.setAttribute("viewBox", "0 0 100 40");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", caption);
  const first = points[0][0];
  const width = points[points.length - 1][0] - first || 1;
  const at = points.map(([time, value]) => `${(((time - first) / width) * 100).toFixed(2)},${(40 - Math.min(value / top, 1) * 38).toFixed(2)}`);
  for (const [kind, d] of [["base", "M0,40H100"], ["area", `M0,40L${at.join("L")}L100,40Z`], ["line", `M${at.join("L")}`]]) {
    const path = document.createElementNS(name, "path");
    path.setAttribute("class", kind);
    path.setAttribute("d", d);
    svg.append(path);
  }
  box.append(svg, make("div", "caption", `${caption}, last ${span(width)}`));
  return box;
}

function meter(ratio, label) {
  if (absent(ratio)) return null;
  const fill = make("i");
  fill.style.width = `${Math.min(ratio, 1) * 100}%`;
  const bar = make("div", "bar meter", fill);
  bar.setAttribute("role", "meter");
  bar.setAttribute("aria-label", label);
  bar.setAttribute("aria-valuenow", Math.round(ratio * 100));
  return bar;
}

const figure = (name, text) => (text === "—" || text === null ? null : make("span", "", `${name} `, make("b", "", text)));

function phaseBar(phases) {
  const bar = make("div", "bar");
  const legend = make("div", "legend");
  for (const phase of [...phases].sort((a, b) => b.share - a.share)) {
    if (phase.share < 0.005) continue;
    const kind = PHASES[phase.name] || "p8";
    const part = make("i", kind);
    part.style.width = `${phase.share * 100}%`;
    part.title = `${phase.name}: ${percent(phase.share)}, ${span(phase.mean_seconds)} a step`;
    bar.append(part);
    legend.append(make("span", "", make("i", kind), `${phase.name} ${percent(phase.share)}`));
  }
  return make("div", "", bar, legend);
}

function findingCard(finding, names) {
  const gain = finding.speedup ? make("span", "gain", `×${finding.speedup.likely.toFixed(2)}`) : null;
  const range = finding.speedup ? make("span", "dim", `predicted, ${finding.speedup.low.toFixed(2)}–${finding.speedup.high.toFixed(2)}`) : null;
  const card = make("article", `card ${finding.severity}`, make("div", "row", gain, range, make("span", "dim end", finding.id)), make("h3", "", finding.title));
  const about = names.get(finding.run);
  if (about) card.append(make("div", "dim", about));
  if (finding.remedy && finding.remedy.summary) card.append(make("p", "", finding.remedy.summary));
  if (finding.remedy && finding.remedy.change) {
    const code = make("pre");
    for (const line of finding.remedy.change.split("\n")) code.append(make("span", line[0] === "+" ? "add" : line[0] === "-" ? "cut" : "", `${line}\n`));
    card.append(code);
  }
  return card;
}

function runCard(run, now) {
  const live = run.state === "running" || run.state === "stalled";
  const state = make("span", run.state === "running" ? "good end" : live || run.state === "ended" ? "dim end" : "bad end", `${run.state}, ${span((run.ended || now) - run.started)}`);
  const card = make("article", "card", make("div", "row", make("h3", "", run.name), state));
  const newestLoss = run.ranks.map((rank) => rank.loss).find((loss) => !absent(loss));
  card.append(make("div", "figures",
    figure("steps", count(run.steps)), figure("", run.iterations_per_second ? `${count(run.iterations_per_second)} it/s` : "—"),
    figure("", run.samples_per_second ? `${count(run.samples_per_second)} samples/s` : "—"), figure("step", span(run.step.p50)), figure("p95", span(run.step.p95)),
    figure("starved", percent(run.starved_ratio)), figure("loss", absent(newestLoss) ? "—" : String(+newestLoss.toPrecision(4))), figure("ranks", run.ranks.length > 1 ? String(run.ranks.length) : "—")));
  if (run.phases.length) card.append(phaseBar(run.phases));
  const stuck = run.ranks.find((rank) => rank.state === "stalled" && rank.live_phase);
  if (stuck) card.append(make("p", "bad", `rank ${stuck.rank} has been in ${stuck.live_phase} for ${span(stuck.live_seconds)}`));
  const speed = run.timeline.filter((part) => part.samples_per_second).map((part) => [part.start, part.samples_per_second]);
  card.append(chart(speed, Math.max(...speed.map((point) => point[1]), 0) * 1.05, "samples/s from 0"));
  return card;
}

// Whether use is too low is the rules' judgement, not this page's: a GPU is marked when they say so.
function gpuCard(gpu, trains, findings) {
  const label = make("h3", "", `${gpu.index}: ${gpu.name || gpu.uuid}`);
  if (gpu.state !== "ok") {
    return make("article", "card critical", label, make("p", "bad", `${gpu.state} for ${span(gpu.age_seconds)}: ${gpu.state_detail || "no detail"}`));
  }
  const worst = findings.find((one) => (one.severity === "critical" || one.severity === "warning") && (one.gpu === gpu.uuid || trains.some((run) => run.id === one.run)));
  const card = make("article", worst ? `card ${worst.severity}` : "card", label);
  card.append(make("div", "row", make("span", "big", percent(gpu.utilization_ratio)), make("span", "dim", trains.map((run) => run.name).join(", ") || "no run"), worst ? make("span", "warn end", worst.id) : null));
  card.append(chart(past.get(`gpu:${gpu.uuid}`) || [], 1, "use, 0–100 %"));
  const ratio = absent(gpu.memory_used_bytes) || !gpu.memory_total_bytes ? null : gpu.memory_used_bytes / gpu.memory_total_bytes;
  card.append(make("div", "figures", figure("memory", ratio === null ? size(gpu.memory_used_bytes) : `${size(gpu.memory_used_bytes)} of ${size(gpu.memory_total_bytes)}`)));
  const bar = meter(ratio, "memory");
  if (bar) card.append(bar);
  const limit = absent(gpu.power_limit_watts) ? "" : ` of ${Math.round(gpu.power_limit_watts)}`;
  card.append(make("div", "figures",
    figure("power", absent(gpu.power_watts) ? "—" : `${Math.round(gpu.power_watts)}${limit} W`), figure("heat", whole(gpu.temperature_celsius, "°C")),
    figure("SM clock", absent(gpu.sm_clock_hertz) ? "—" : `${Math.round(gpu.sm_clock_hertz / 1e6)} MHz`), figure("tensor", percent(gpu.activity.tensor_active_ratio)), figure("SM active", percent(gpu.activity.sm_active_ratio))));
  const slow = Object.entries(gpu.throttle || {}).filter(([reason, active]) => active && reason !== "gpu_idle").map(([reason]) => reason);
  if (slow.length) card.append(make("p", "warn", `throttled: ${slow.join(", ")}`));
  return card;
}

function hostCard(host) {
  const card = make("article", "card");
  const row = make("div", "figures");
  if (host.cpu) row.append(...[figure("CPU", `${percent(host.cpu.utilization_ratio)} of ${host.cpu.cores} cores`), figure("I/O wait", percent(host.cpu.iowait_ratio)), figure("load", count(host.cpu.load_1m))].filter(Boolean));
  if (host.memory) row.append(figure("memory", `${size(host.memory.total_bytes - host.memory.available_bytes)} of ${size(host.memory.total_bytes)}`));
  for (const disk of host.disks) if (disk.busy_ratio > 0.005) row.append(figure(disk.name, `${percent(disk.busy_ratio)} busy, ${size(disk.read_bytes_per_second)}/s read`));
  card.append(row, chart(past.get("host") || [], 1, "CPU, 0–100 %"));
  return card;
}

function fill(id, title, kind, cards) {
  const section = byId(id);
  section.replaceChildren(...(cards.length ? [make("h2", "", title), make("div", kind, ...cards)] : []));
}

function draw(snapshot) {
  const names = new Map(snapshot.runs.map((run) => [run.id, run.name]));
  const live = snapshot.runs.filter((run) => run.state === "running" || run.state === "stalled");
  const users = new Map();
  for (const gpu of snapshot.gpus) {
    const pids = gpu.processes.map((process) => process.pid);
    users.set(gpu.uuid, live.filter((run) => run.gpu_uuids.includes(gpu.uuid) || run.pids.some((pid) => pids.includes(pid))));
  }
  const shown = live.length ? live : snapshot.runs.slice(0, 4);
  // What was found about a run that has been run again since is no longer what to change.
  const again = (run) => run.ended && snapshot.runs.some((other) => other.name === run.name && other.user === run.user && other.started > run.started);
  const ids = new Set(shown.filter((run) => !again(run)).map((run) => run.id));
  byId("host").textContent = snapshot.host.hostname;
  byId("simulated").hidden = snapshot.source.kind !== "simulated";
  const trouble = snapshot.source.kind === "none" || !snapshot.source.ok ? `No GPU readings: ${snapshot.source.detail || "no reason given"}` : "";
  byId("trouble").textContent = trouble;
  byId("trouble").hidden = !trouble;
  fill("findings", "What to change", "cards wide", snapshot.findings.filter((one) => absent(one.run) || ids.has(one.run)).slice(0, 6).map((one) => findingCard(one, names)));
  fill("runs", live.length ? "Runs" : "Last runs", "cards wide", shown.map((run) => runCard(run, snapshot.time)));
  fill("gpus", snapshot.source.kind === "simulated" ? "GPUs (simulated)" : "GPUs", "cards", snapshot.gpus.map((gpu) => gpuCard(gpu, users.get(gpu.uuid), snapshot.findings)));
  fill("machine", "Host", "cards wide", [hostCard(snapshot.host)]);
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
  const stale = !newest || age > Math.max(3 * newest.interval_seconds, 2);
  state.className = stale ? "badge stale" : "badge live";
  state.textContent = !newest ? "no data yet" : stale ? `stale: last data ${span(age)} ago` : `live, every ${span(newest.interval_seconds)}`;
  document.querySelector("main").classList.toggle("stale", Boolean(newest) && stale);
}

// What was before this page was opened, when the daemon keeps history.
async function recall() {
  const answer = await fetch(`/api/v1/history?from=${Date.now() / 1000 - 600}&points=200`);
  if (!answer.ok) return;
  for (const series of (await answer.json()).series) {
    const key = series.subject === "host" && series.field === "cpu_utilization_ratio" ? "host" : series.field === "utilization_ratio" ? series.subject : null;
    if (key) past.set(key, series.time.map((time, index) => [time, series.mean[index]]));
  }
}

function follow() {
  const source = new EventSource("/api/v1/stream");
  source.onmessage = (event) => take(JSON.parse(event.data));
}

document.addEventListener("visibilitychange", () => { if (!document.hidden && newest) draw(newest); });
setInterval(mark, 1000);
recall().catch(() => {}).finally(follow);
