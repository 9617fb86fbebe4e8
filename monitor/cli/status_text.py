"""The text of `gpumon status`: one line per GPU, one paragraph per run, the findings that gain most."""

from __future__ import annotations

import time
from collections.abc import Iterator

from monitor.language import cells, said, word
from monitor.model import groups
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu
from monitor.model.host import Host
from monitor.model.run import Run
from monitor.model.snapshot import HISTORY_STEPS, Snapshot
from monitor.model.units import (
    ABSENT,
    celsius,
    duration,
    gain,
    number,
    of,
    percent,
    seconds,
    visible,
    watts,
    whole,
)
from monitor.terminal import COLORS, PLAIN, Terminal, plain, wrapped

FINDINGS_SHOWN = 5
HANG = " " * 9
"""Aligns with the text after a finding's severity."""
PHASES_SHOWN = 5
FIGURES_WIDTH = 62
"""Room for a GPU's figures beside its name."""


def render(snapshot: Snapshot, origin: str, width: int | None, on: Terminal = PLAIN) -> str:
    """The whole answer. No line is longer than `width`; if it is None, nothing is wrapped or cut."""
    lines = [*_head(snapshot, origin), *_gpus(snapshot, width), *_host(snapshot.host), *_runs(snapshot)]
    lines += [*_findings(snapshot), *_lost(snapshot)]
    return "".join(f"{line}\n" for text in lines for line in _fitted(text, width, on))


def _fitted(text: str, width: int | None, on: Terminal) -> Iterator[str]:
    """One entry as lines of plain text; continuation lines are indented below its text."""
    text = said(plain(text))
    tone = text.partition(" ")[0] if text[:1] != " " else ""
    if tone in COLORS:
        text = f"{cells.left(word(tone), len(HANG))}{text[len(HANG) :]}"
    if width is None or cells.width(text) <= width:
        yield on.paint(text, tone)
        return
    indent = text[: len(text) - len(text.lstrip())]
    for line in wrapped(text.lstrip(), width, indent, HANG if tone in COLORS else "    "):
        yield on.paint(_cut(line, width), tone)


def _cut(line: str, width: int) -> str:
    """A single word may be longer than the terminal is wide."""
    while cells.width(line) > width:
        line = line.removesuffix("…")[:-1] + "…"
    return line


def _head(snapshot: Snapshot, origin: str) -> Iterator[str]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(snapshot.time))
    yield f"{snapshot.host.hostname}  {at}  ({said(origin)})"
    source = snapshot.source
    if source.kind == "simulated":
        yield "GPUs are SIMULATED: these are not readings of real cards"
    elif source.kind == "none" or not source.ok:
        yield f"no GPU readings: {source.detail or 'no reason given'}"
    elif source.driver_version:
        yield f"driver {source.driver_version}, CUDA {source.cuda_version or ABSENT}"


def _gpus(snapshot: Snapshot, width: int | None) -> Iterator[str]:
    if not snapshot.gpus:
        return
    yield ""
    named = max(len(gpu.name or ABSENT) for gpu in snapshot.gpus)
    room = named if width is None else min(named, max(8, width - FIGURES_WIDTH))
    for gpu in snapshot.gpus:
        yield _gpu(gpu, room)


def _gpu(gpu: Gpu, room: int) -> str:
    name = _cut(gpu.name or ABSENT, room).ljust(room)
    label = f"[{gpu.index}] {name}"
    if gpu.state != "ok":
        age = duration(gpu.age_seconds)
        return f"{label}  {gpu.state.upper()} for {age}: {gpu.state_detail or 'no detail'}"
    figures = (
        f"{percent(gpu.utilization_ratio):>5}",
        f"{celsius(gpu.temperature_celsius):>4}",
        f"{watts(gpu.power_watts, gpu.power_limit_watts):>11}",
        f"{of(gpu.memory_used_bytes, gpu.memory_total_bytes):>13}",
    )
    notes = [*gpu.run_labels, *(f"throttled: {reason}" for reason in gpu.throttled_by)]
    return "  ".join([label, *figures, *notes]).rstrip()


def _host(host: Host) -> Iterator[str]:
    parts = []
    if host.cpu:
        parts.append(f"CPU {percent(host.cpu.utilization_ratio)} of {host.cpu.cores} cores")
        if visible(host.cpu.iowait_ratio):
            parts.append(f"I/O wait {percent(host.cpu.iowait_ratio)}")
    if host.memory:
        parts.append(f"memory {of(host.memory.used_bytes, host.memory.total_bytes)}")
    busy = [disk for disk in host.disks if visible(disk.busy_ratio)]
    parts += [f"{disk.name} {percent(disk.busy_ratio)} busy" for disk in busy]
    if parts:
        yield ""
        yield f"{word('host')}  " + ", ".join(map(said, parts))


def _runs(snapshot: Snapshot) -> Iterator[str]:
    live = [run for run in snapshot.runs if run.live]
    for run in live:
        yield ""
        yield from _run(run)
    ended = len(snapshot.runs) - len(live)
    if ended:
        yield ""
        crashed = sum(run.state in ("killed", "failed") for run in snapshot.runs)
        note = f", {crashed} of them killed or failed" if crashed else ""
        yield f"{ended} run{'' if ended == 1 else 's'} ended lately{note}: gpumon runs"
    elif not live:
        yield ""
        yield "no training runs now (gpumon run -- python train.py)"


def _run(run: Run) -> Iterator[str]:
    ranks = f", {len(run.ranks)} ranks" if len(run.ranks) > 1 else ""
    who = f", {run.user}" if run.user else ""
    since = duration(run.elapsed_seconds)
    state = f"hung, started {since} ago" if run.state == "stalled" else f"{run.state} for {since}"
    yield f"run {run.name}  {state}{ranks}{who}  ({run.id})"
    parts = [f"{whole(run.steps)} steps", *_speeds(run), f"step {seconds(run.step.p50)}"]
    yield "    " + ", ".join(map(said, parts))
    largest = sorted(run.phases, key=lambda phase: -phase.share)[:PHASES_SHOWN]
    if largest:
        shown = (f"{word(phase.name)} {percent(phase.share)}" for phase in largest if visible(phase.share))
        yield "    " + "  ".join(shown)
    if run.state == "stalled" and run.current is not None:
        stuck = run.current
        yield f"    rank {stuck.rank} has been in {stuck.phase} for {duration(stuck.seconds)}"


def _speeds(run: Run) -> Iterator[str]:
    speeds = (
        (run.iterations_per_second, "it/s"),
        (run.samples_per_second, "samples/s"),
        (run.tokens_per_second, "tokens/s"),
    )
    return (f"{number(speed)} {unit}" for speed, unit in speeds if speed is not None)


def _findings(snapshot: Snapshot) -> Iterator[str]:
    """Findings of live runs and of the machine, in the engine's order, with duplicates merged."""
    live = [finding for finding in groups.leads(snapshot) if finding.live]
    if not live:
        return
    yield ""
    for finding in live[:FINDINGS_SHOWN]:
        yield from _finding(finding)
    left = len(live) - FINDINGS_SHOWN
    if left > 0:
        yield f"and {left} more: gpumon status --json"


def _finding(finding: Finding) -> Iterator[str]:
    promise = f"{gain(finding.speedup.likely)} " if finding.speedup else ""
    yield f"{finding.severity:<8} {promise}{said(finding.brief)} ({finding.subject})  [{finding.id}]"
    if finding.remedy.summary:
        yield f"{HANG}→ {said(finding.remedy.summary)}"


def _lost(snapshot: Snapshot) -> Iterator[str]:
    """A gap in the history is reported, not hidden."""
    steps = snapshot.dropped.get(HISTORY_STEPS)
    if steps:
        yield ""
        yield f"{whole(steps)} steps could not be written to the history"
