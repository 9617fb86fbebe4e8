"""A rank's device: how long it was idle, in which phase, and what held it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from monitor.model.devices import BUSY
from monitor.model.records import Counters
from monitor.model.run import Bound, Device, OtherDevice
from monitor.runs.tally import Tally

PREFIX = "device."
"""Prefix of the SDK's device-lane scalars; `sdk/device/_sums.py` names them."""
MOST_DEVICES = 16
"""How many devices of one process are named."""
ALWAYS = 0.9
"""From this share of marks with an empty queue, it is assumed to be empty everywhere."""


def device_times(
    tally: Tally, counters: Counters, scalars: Mapping[str, float], dropped: int, alone: bool = True
) -> Device:
    """From the records' device words (`tally`) and the per-phase figures (`scalars`). Not `alone`: others
    work for this process, too, and a gap may be a wait for them."""
    figures = {name.removeprefix(PREFIX): value for name, value in scalars.items() if name.startswith(PREFIX)}
    if not figures and not tally.measured:
        return Device(skipped_steps=dropped)
    time, idle, empty = (_by_phase(figures, name) for name in ("time_s", "idle_s", "empty"))
    starved = tally.starved_ratio()
    if starved is None and "known" in figures and (whole := sum(time.values())) > 0:
        starved = min(1.0, sum(idle.values()) / whole)  # a run too short for its records
    causes = _causes(figures, sum(time.values()), sum(idle.values()))
    bound = _bound(starved, time, idle, empty, causes.sync)
    return Device(
        busy_seconds=counters.busy_ns / 1e9 if counters.measured else None,
        starved_seconds=counters.starved_ns / 1e9 if counters.measured else None,
        busy_ratio=None if starved is None else 1.0 - starved,
        starved_ratio=starved,
        lag_seconds=figures.get("lag_s"),
        time=time,
        idle=idle if starved is not None else {name: idle[name] for name in ("data",) if name in idle},
        queue_empty=empty,
        sync_idle_seconds=causes.sync,
        copy_idle_seconds=causes.copy,
        copy_seconds=figures.get("copy_s"),
        pageable_copy_seconds=figures.get("pageable_s"),
        kernels=figures.get("kernels"),
        syncs=figures.get("syncs"),
        wait_seconds=causes.wait,
        exchange_seconds=figures.get("comm_s"),
        bound=bound if alone or bound == "device" else "unknown",
        measured_steps=counters.measured,
        skipped_steps=dropped,
    )


def other_devices(config: Mapping[str, Any], scalars: Mapping[str, float]) -> tuple[OtherDevice, ...]:
    """The devices of a process but the first, whose times are `device_times`."""
    listed = config.get("devices")
    names = [str(one) for one in listed[1:MOST_DEVICES]] if isinstance(listed, list) else []
    return tuple(
        OtherDevice(
            name, scalars.get(f"{PREFIX}other_idle.{name}"), scalars.get(f"{PREFIX}other_kernels.{name}")
        )
        for name in names
    )


def _by_phase(figures: Mapping[str, float], name: str) -> dict[str, float]:
    found = {}
    for key, value in figures.items():
        kind, _, phase = key.partition(".")
        if kind == name and phase and value >= 0.0:
            found[phase] = value
    return found


class _Causes(NamedTuple):
    """Seconds per ordinary step; None: there was no window."""

    copy: float | None = None
    sync: float | None = None
    wait: float | None = None


def _causes(figures: Mapping[str, float], period: float, idle: float) -> _Causes:
    """From the steps of the sampling window, in which the host is slower: it is being observed, and may have
    been interrupted. A copy is the device's own work and takes equally long in any step; the host's delays
    are scaled to their share of the remaining idle time, and of the step."""
    if "gap_s" not in figures:
        return _Causes()
    copy = min(figures.get("copy_idle_s", 0.0), idle)
    gaps = figures["gap_s"] - figures.get("copy_idle_s", 0.0)
    sync = (idle - copy) * min(1.0, figures.get("sync_idle_s", 0.0) / gaps) if gaps > 0 else 0.0
    window = figures.get("window_s", 0.0)
    wait = figures["wait_s"] * min(1.0, period / window) if "wait_s" in figures and window > 0 else None
    return _Causes(copy, sync, wait)


def _bound(
    starved: float | None,
    time: Mapping[str, float],
    idle: Mapping[str, float],
    empty: Mapping[str, float],
    after_syncs: float | None,
) -> Bound:
    if starved is None:
        return "host" if _empty_everywhere(time, empty) else "unknown"
    if starved < BUSY:
        return "device"
    if not idle:
        return "unknown"
    waiting = idle.get("data", 0.0)
    elsewhere = sum(idle.values()) - waiting
    if waiting >= elsewhere:
        return "data"
    return "sync" if (after_syncs or 0.0) > elsewhere / 2 else "host"


def _empty_everywhere(time: Mapping[str, float], empty: Mapping[str, float]) -> bool:
    """The queue is empty at every mark of the loop: the host cannot launch as fast as the device works."""
    phases = [phase for phase in empty if phase != "data" and time.get(phase)]
    return bool(phases) and all(empty[phase] >= ALWAYS for phase in phases)
