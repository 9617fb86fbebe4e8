"""The text of `gpumon status`: one line a GPU, one paragraph a run, the findings that gain most."""

from __future__ import annotations

import time
from collections.abc import Iterator

from monitor.snapshot import Finding, Gpu, Host, Run, Snapshot

FINDINGS_SHOWN = 5
PHASES_SHOWN = 5
ABSENT = "—"


def render(snapshot: Snapshot, origin: str, width: int) -> str:
    """The whole answer, no line longer than `width`."""
    lines = [*_head(snapshot, origin), *_gpus(snapshot, width), *_host(snapshot.host), *_runs(snapshot)]
    lines += _findings(snapshot)
    return "".join(f"{_cut(line, width)}\n" for line in lines)


def _cut(line: str, width: int) -> str:
    """One line of plain text: names come from other users' files and may hold anything."""
    line = line if line.isprintable() else "".join(c if c.isprintable() else " " for c in line)
    return line if len(line) <= width else line[: width - 1] + "…"


# ── Figures ──────────────────────────────────────────────────────────────────────────────────────


def percent(ratio: float | None) -> str:
    return ABSENT if ratio is None else f"{ratio * 100:.0f} %"


def size(value: float | None) -> str:
    """Bytes as people read them; 1024-based, as memory is sold."""
    if value is None:
        return ABSENT
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB" if value < 1024 else f"{value / 1024:.1f} TiB"


def span(seconds: float | None) -> str:
    """A duration in the unit that suits it."""
    if seconds is None:
        return ABSENT
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def rate(value: float | None, unit: str) -> str | None:
    return None if value is None else f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


# ── Parts ────────────────────────────────────────────────────────────────────────────────────────


def _head(snapshot: Snapshot, origin: str) -> Iterator[str]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(snapshot.time))
    yield f"{snapshot.host.hostname}  {at}  ({origin})"
    source = snapshot.source
    if source.kind == "simulated":
        yield "GPUs are SIMULATED: these are not readings of real cards"
    elif source.kind == "none" or not source.ok:
        yield f"no GPU readings: {source.detail or 'no reason given'}"
    elif source.driver_version:
        yield f"driver {source.driver_version}, CUDA {source.cuda_version or ABSENT}"


def _gpus(snapshot: Snapshot, width: int) -> Iterator[str]:
    if not snapshot.gpus:
        return
    yield ""
    users = _run_names(snapshot)
    named = max((len(gpu.name or ABSENT) for gpu in snapshot.gpus), default=0)
    room = min(named, max(8, width - 62))
    for gpu in snapshot.gpus:
        yield _gpu(gpu, users.get(gpu.uuid, []), room)


def _gpu(gpu: Gpu, users: list[str], room: int) -> str:
    name = _cut(gpu.name or ABSENT, room).ljust(room)
    label = f"[{gpu.index}] {name}"
    if gpu.state != "ok":
        return f"{label}  {gpu.state.upper()} for {span(gpu.age_seconds)}: {gpu.state_detail or 'no detail'}"
    heat = ABSENT if gpu.temperature_celsius is None else f"{gpu.temperature_celsius:.0f} °C"
    figures = (
        f"{percent(gpu.utilization_ratio):>5}",
        f"{heat:>5}",
        f"{_of(gpu.power_watts, gpu.power_limit_watts, 'W'):>11}",
        f"{_memory(gpu):>19}",
    )
    slow = [reason for reason, active in (gpu.throttle or {}).items() if active and reason != "gpu_idle"]
    notes = [*users, *(f"throttled: {reason}" for reason in slow)]
    return "  ".join([label, *figures, *notes]).rstrip()


def _of(value: float | None, limit: float | None, unit: str) -> str:
    if value is None:
        return ABSENT
    return f"{value:.0f} {unit}" if limit is None else f"{value:.0f}/{limit:.0f} {unit}"


def _memory(gpu: Gpu) -> str:
    if gpu.memory_used_bytes is None or gpu.memory_total_bytes is None:
        return size(gpu.memory_used_bytes)
    return f"{gpu.memory_used_bytes / 2**30:.1f}/{size(gpu.memory_total_bytes)}"


def _run_names(snapshot: Snapshot) -> dict[str, list[str]]:
    """GPU → its live runs: those that name it, and those whose processes the driver lists on it."""
    live = [run for run in snapshot.runs if run.state in ("running", "stalled")]
    names: dict[str, list[str]] = {}
    for gpu in snapshot.gpus:
        pids = {process.pid for process in gpu.processes}
        names[gpu.uuid] = [run.name for run in live if gpu.uuid in run.gpu_uuids or pids & set(run.pids)]
    return names


def _host(host: Host) -> Iterator[str]:
    parts = []
    if host.cpu:
        parts.append(f"CPU {percent(host.cpu.utilization_ratio)} of {host.cpu.cores} cores")
        if (host.cpu.iowait_ratio or 0) >= 0.01:
            parts.append(f"I/O wait {percent(host.cpu.iowait_ratio)}")
    if host.memory:
        used = host.memory.total_bytes - host.memory.available_bytes
        parts.append(f"memory {used / 2**30:.1f}/{size(host.memory.total_bytes)}")
    busy = [disk for disk in host.disks if (disk.busy_ratio or 0) >= 0.01]
    parts += [f"{disk.name} {percent(disk.busy_ratio)} busy" for disk in busy]
    if parts:
        yield ""
        yield "host  " + ", ".join(parts)


def _runs(snapshot: Snapshot) -> Iterator[str]:
    live = [run for run in snapshot.runs if run.state in ("running", "stalled")]
    for run in live:
        yield ""
        yield from _run(run, snapshot.time)
    ended = len(snapshot.runs) - len(live)
    if ended:
        yield ""
        yield f"{ended} ended run{'' if ended == 1 else 's'}: gpumon runs"
    elif not live:
        yield ""
        yield "no training run seen (gpumon run -- python train.py)"


def _run(run: Run, now: float) -> Iterator[str]:
    ranks = f", {len(run.ranks)} ranks" if len(run.ranks) > 1 else ""
    who = f", {run.user}" if run.user else ""
    yield f"run {run.name}  {run.state} for {span(now - run.started)}{ranks}{who}  ({run.id})"
    speeds = (
        rate(run.iterations_per_second, "it/s"),
        rate(run.samples_per_second, "samples/s"),
        rate(run.tokens_per_second, "tokens/s"),
    )
    shown = [speed for speed in speeds if speed]
    yield "    " + ", ".join([f"{run.steps:,} steps", *shown, f"step {span(run.step.p50)}"])
    if run.phases:
        largest = sorted(run.phases, key=lambda phase: -phase.share)[:PHASES_SHOWN]
        yield "    " + "  ".join(
            f"{phase.name} {percent(phase.share)}" for phase in largest if phase.share >= 0.005
        )
    for rank in run.ranks:
        if rank.state == "stalled" and rank.live_phase:
            yield f"    rank {rank.rank} has been in {rank.live_phase} for {span(rank.live_seconds)}"


def _findings(snapshot: Snapshot) -> Iterator[str]:
    """Those of live runs and of the machine, in the engine's order."""
    names = {run.id: run.name for run in snapshot.runs if run.state in ("running", "stalled")}
    live = [finding for finding in snapshot.findings if finding.run is None or finding.run in names]
    if not live:
        return
    yield ""
    for finding in live[:FINDINGS_SHOWN]:
        yield from _finding(finding, names)
    left = len(live) - FINDINGS_SHOWN
    if left > 0:
        yield f"and {left} more: gpumon status --json"


def _finding(finding: Finding, names: dict[str, str]) -> Iterator[str]:
    about = names.get(finding.run or "", "")
    gain = f"×{finding.speedup.likely:.2f} " if finding.speedup else ""
    yield f"{finding.severity:<8} {gain}{finding.title}{f' ({about})' if about else ''}  [{finding.id}]"
    if finding.remedy.summary:
        yield f"         → {finding.remedy.summary}"
