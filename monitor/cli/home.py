"""`gpumon` alone: what is going on here, and what to do next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from monitor import terminal
from monitor.cli import run_source, status
from monitor.model.facts import LIVE
from monitor.model.snapshot import Snapshot
from monitor.terminal import Terminal

MORE = ("gpumon --help", "all commands")


def run() -> int:
    """The status, then hints that fit it."""
    parser = argparse.ArgumentParser()
    status.configure(parser)
    args = parser.parse_args([])
    snapshot = status.show_once(args)
    with run_source.open_runs(args) as source:
        over = sum(row.state not in LIVE for row in source.rows(limit=len(snapshot.runs) + 2))
    on = Terminal(sys.stdout)
    print()
    print("\n".join(terminal.hints((*hints(snapshot, over), MORE), on.width, on)))
    return 0


def hints(snapshot: Snapshot, over: int) -> Iterator[tuple[str, str]]:
    """(command, why), the most useful first; `over` past runs are known, of which the history may have more
    than the snapshot."""
    live = [run for run in snapshot.runs if run.live]
    if live:
        yield "gpumon tui", "watch it"
        yield f"gpumon show {live[0].id}", "everything about it"
    else:
        yield "gpumon run -- python train.py", "run a training under gpumon"
    if over:
        yield "gpumon report last", "the newest run as a page, with charts"
    if over > 1:
        yield "gpumon compare last~1 last", "did the last change help?"
    if not live and not over:
        yield "gpumon demo", "see what it does, without a GPU"
