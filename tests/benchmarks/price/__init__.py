"""The whole price of watching: CPU seconds of the whole process tree and wall time, bare against watched.

``python -m tests.benchmarks.price`` (12 programs of 20 to 40 s, about 25 min), then ``… --peers`` for TraceML
and W&B on the same programs (about 13 min). Everything gpumon does to a run is in it: marks, sampling, the
probe, start-up, loader workers, the watching process, the report. The figures come from the kernel's account
of the processes, not from our recorder. ``--quick`` is for development and records nothing.

A bare and a watched run go side by side, a core each, and change cores with every pair. One after the other,
a machine that is faster one minute than the next gave errors as large as the price.

``--more`` adds pairs to those on file. With ``--minutes 11`` it stops in time and the next call goes on; a
program's runs are always made together.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.price.catalog import PROGRAMS, Program
from tests.benchmarks.price.libraries import has, price_python
from tests.benchmarks.price.report import Results, line, write
from tests.benchmarks.price.runs import TOOLS, Failed, run_pair

PEERS = ("traceml", "wandb")
PAIRS, PEER_PAIRS = 4, 1
"""Fixed before the first recorded round."""


def main(arguments: Sequence[str] = ()) -> int:
    args = options(arguments)
    if len(os.sched_getaffinity(0)) < 2:
        print("two runs side by side need two cores; this machine gives one", file=sys.stderr)
        return 2
    python = price_python()
    recorded = not args.quick and not args.only
    results = Results.load() if recorded else Results()
    programs = chosen(args.only, python)
    if not args.more:
        programs = results.left(programs, args.tools)
    for tool in args.tools:  # the first run compiles modules and reads everything from disk
        attempt(tool, programs[0], python, quick=True)
    clock, failed = Clock(args.minutes), 0
    for program in programs:
        if not clock.has_time():
            return 1 if failed else 0
        failed += measured(program, python, args, results)
        print(line(program.name, results.of(program.name)), flush=True)
        if recorded:
            results.save()
    if recorded:
        write(results)
    return 1 if failed else 0


class Clock:
    """Whether one more program fits into the minutes there are, taken to be as long as the longest so far."""

    def __init__(self, minutes: float) -> None:
        self._last = time.monotonic()
        self._end = self._last + 60 * minutes
        self._longest = 0.0

    def has_time(self) -> bool:
        now = time.monotonic()
        self._longest, self._last = max(self._longest, now - self._last), now
        return now + self._longest < self._end


def measured(program: Program, python: Path, args: argparse.Namespace, results: Results) -> int:
    """Run it with every tool, beside a bare run each time; how many pairs of ours failed."""
    failed = 0
    for tool in args.tools:
        for number in range(args.pairs):
            found = attempt(tool, program, python, quick=args.quick, swapped=number % 2 == 1)
            failed += found is None and tool not in PEERS
            results.add(program.name, tool, found)
    return failed


def options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.price")
    parser.add_argument("--quick", action="store_true", help="short runs, one pair; records nothing")
    parser.add_argument("--peers", action="store_true", help="TraceML and W&B, beside what is recorded")
    parser.add_argument("--pairs", type=int, help=f"pairs of runs (default: {PAIRS}; peers: {PEER_PAIRS})")
    parser.add_argument("--more", action="store_true", help="add pairs to those on file, for smaller errors")
    parser.add_argument("--only", action="append", default=[], help="only this program; records nothing")
    parser.add_argument("--tool", choices=TOOLS, default="gpumon", help="what to compare with bare")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop in time; go on with the next call"
    )
    args = parser.parse_args(list(arguments))
    args.tools = PEERS if args.peers else (args.tool,)
    if args.pairs is None:
        args.pairs = PEER_PAIRS if args.peers else 1 if args.quick else PAIRS
    return args


def chosen(names: list[str], python: Path) -> list[Program]:
    wanted = [one for one in PROGRAMS if not names or one.name in names]
    there = [one for one in wanted if one.needs is None or has(python, one.needs)]
    for one in wanted:
        if one not in there:
            print(f"{one.name} is left out: {one.needs} is not installed", file=sys.stderr)
    return there


def attempt(
    tool: str, program: Program, python: Path, *, quick: bool, swapped: bool = False
) -> dict[str, Any] | None:
    try:
        return run_pair(tool, program, python, quick=quick, swapped=swapped)
    except Failed as error:
        print(error, file=sys.stderr)
        return None
