"""Which part of a trace the figures cover, and its steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from monitor.traces.report import Steps
from monitor.traces.trace import NS, Range, Trace, Work

STEP = re.compile(r"ProfilerStep\s*#\s*(\d+)")


def steps_of(trace: Trace) -> list[tuple[int, Range]]:
    """Number and range of each profiler step, in order."""
    found = []
    for one in trace.ranges:
        if one.name.startswith("ProfilerStep") and (match := STEP.match(one.name)):
            found.append((int(match.group(1)), one))
    return sorted(found, key=lambda step: step[1].begin)


def choose(trace: Trace, steps: list[tuple[int, Range]], *, last_step: bool) -> tuple[Work, ...]:
    """The work that counts: launched after the first step begins and, if there are several steps, before the
    last, in which the profiler stops and waits for the device."""
    if not steps:
        return trace.work
    begin = steps[0][1].begin
    end = steps[-1][1].end if last_step or len(steps) < 2 else steps[-1][1].begin
    launched = [(work, work.launch.begin) for work in trace.work if work.launch is not None]
    return tuple(work for work, at in launched if begin <= at < end) or trace.work


def summary(steps: Sequence[tuple[int, Range]], *, last_step: bool) -> Steps | None:
    if not steps:
        return None
    lengths = [(one.end - one.begin) / NS for _, one in steps]
    return Steps(
        first=steps[0][0],
        last=steps[-1][0],
        count=len(steps),
        mean_seconds=sum(lengths) / len(lengths),
        min_seconds=min(lengths),
        max_seconds=max(lengths),
        in_window=len(steps) if last_step or len(steps) < 2 else len(steps) - 1,
    )
