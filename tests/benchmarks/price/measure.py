"""Run one command and say what it and everything it started has used, and what the first process alone has.

Processes whose parent has gone are handed to this one (a subreaper), so that none escapes the account. This
is its own program, because the kernel adds up the children of a process over its whole life.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import subprocess
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
"""Of Linux's prctl.h."""
BEGUN_S, REPORT_S, ENOUGH = 8.0, 2.0, 5
"""Seconds by which a program has made its first steps, seconds before its end, and readings between."""


def main() -> int:
    """measure.py OUTPUT CORE COMMAND…: the figures go to OUTPUT as JSON."""
    output, core, *words = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.monotonic()
    child = subprocess.Popen(words)
    readings = _follow(child.pid)
    wall = time.monotonic() - began
    code = child.wait()
    while _reaped():
        pass
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "code": code,
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "system": used.ru_stime,
        "switches": used.ru_nvcsw,
        "own_cpu": readings[-1][1],
        "own_share": _share(readings),
    }
    with open(output, "w", encoding="utf-8") as file:
        json.dump(figures, file)
    return 0


def _follow(pid: int) -> list[tuple[float, float]]:
    """(seconds since the beginning, CPU seconds of the process itself), once a second until it has ended."""
    began, found = time.monotonic(), []
    ended = os.pidfd_open(pid)
    while True:
        over = select.select([ended], [], [], 1.0)[0]
        found.append((time.monotonic() - began, _own_cpu(pid)))  # of one that has ended, too: it is a zombie
        if over:
            os.close(ended)
            return found


def _own_cpu(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _share(readings: list[tuple[float, float]]) -> float | None:
    """CPU seconds a second in the middle of the run, when `gpumon run` has begun to read and does not yet
    report; None where the run was too short to tell."""
    middle = [one for one in readings if BEGUN_S < one[0] < readings[-1][0] - REPORT_S]
    if len(middle) < ENOUGH:
        return None
    (first, before), (last, after) = middle[0], middle[-1]
    return (after - before) / (last - first)


def _reaped() -> bool:
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
