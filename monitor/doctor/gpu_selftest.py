"""What the GPU self-test expects of each loop, and whether gpumon's answer agrees with the truth."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from monitor import __version__
from monitor.model.run import Device, Run

POINTS = 0.05
"""Chosen: how far the idle share may be from the truth."""
ALARMS = ("input.", "transfer.", "compute.launch_bound", "compute.sync_every_step")
"""Findings a healthy loop must not get."""


class Expected(Struct, frozen=True):
    """The truth about a loop."""

    what: str
    bounds: tuple[str, ...]
    findings: tuple[str, ...] = ()
    """There must be a finding with one of these prefixes."""
    alarms: bool = True


LOOPS = {
    "healthy": Expected("nothing but work", ("device",), alarms=False),
    "launch": Expected("many tiny kernels", ("host",)),
    "input": Expected("a slow loader", ("data",)),
    "sync": Expected("a read after every kernel", ("sync",)),
    "copy": Expected("blocking copies", ("host",), ("transfer.",)),
}


class Outcome(Struct, frozen=True):
    """One loop: the truth, what gpumon said, and whether they agree."""

    loop: str
    class_held: bool
    idle_held: bool
    bound: str
    expected: tuple[str, ...]
    idle_true: float
    idle_measured: float | None
    step_seconds: float
    kernel_seconds: float
    findings: tuple[str, ...]
    device: Device

    @property
    def held(self) -> bool:
        return self.class_held and self.idle_held


class Answer(Struct, frozen=True):
    """The file to send; it contains no names of people, machines or folders."""

    card: dict[str, Any]
    loops: tuple[Outcome, ...]
    gpumon: str = __version__
    python: str = platform.python_version()
    platform: str = f"{sys.platform} {platform.machine()}"
    points: float = POINTS
    schema: int = 1


def judge(
    loop: str, step_seconds: float, kernel_seconds: float, run: Run | None, ids: tuple[str, ...]
) -> Outcome:
    """Compare what gpumon said, and the ids of its findings, with the truth."""
    expected = LOOPS[loop]
    device = run.ranks[0].device_times if run is not None and run.ranks else Device()
    truth = max(0.0, 1 - kernel_seconds / step_seconds)
    idle = run.starved_ratio if run is not None else None
    return Outcome(
        loop=loop,
        class_held=device.bound in expected.bounds and _findings_fit(expected, ids),
        idle_held=idle is not None and abs(idle - truth) <= POINTS,
        bound=device.bound,
        expected=expected.bounds,
        idle_true=truth,
        idle_measured=idle,
        step_seconds=step_seconds,
        kernel_seconds=kernel_seconds,
        findings=ids,
        device=device,
    )


def _findings_fit(expected: Expected, ids: Sequence[str]) -> bool:
    named = not expected.findings or any(one.startswith(expected.findings) for one in ids)
    return named and (expected.alarms or not any(one.startswith(ALARMS) for one in ids))
