"""`gpumon` alone: what is going on here, and what to do next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from monitor.cli import status
from monitor.language import said
from monitor.model.snapshot import Snapshot
from monitor.terminal import Terminal

MORE = ("gpumon --help", "all commands")


def run() -> int:
    """The status, then hints that fit it."""
    parser = argparse.ArgumentParser()
    status.configure(parser)
    snapshot = status.show_once(parser.parse_args([]))
    on = Terminal(sys.stdout)
    print()
    for command, why in (*hints(snapshot), MORE):
        print(f"{on.paint(command.ljust(36), 'bold')} {on.paint(said(why), 'dim')}")
    return 0


def hints(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """(command, why), the most useful first."""
    live = [run for run in snapshot.runs if run.live]
    over = [run for run in snapshot.runs if not run.live]
    if live:
        yield "gpumon tui", "watch it"
        yield f"gpumon show {live[0].id}", "everything about it"
    else:
        yield "gpumon run -- python train.py", "run a training under gpumon"
    if over:
        yield "gpumon report last", "the newest run as a page, with charts"
    if len(over) > 1:
        yield "gpumon compare last~1 last", "is the newest run faster than the one before?"
    if not snapshot.runs:
        yield "gpumon demo", "see what it does, without a GPU"
