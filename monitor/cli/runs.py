"""`gpumon runs`: list training runs, live and past."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from monitor.catalog.rows import RunRow
from monitor.cli import fleet_source, run_source
from monitor.cli.runs_nodes import across
from monitor.model.snapshot import encode
from monitor.model.units import ABSENT, ago, number, seconds, whole
from monitor.terminal import Terminal, table

STATES = ("running", "stalled", "ended", "failed", "killed")


def configure(parser: argparse.ArgumentParser) -> None:
    run_source.configure(parser)
    fleet_source.configure(parser)
    parser.add_argument("--limit", type=_positive, default=50, metavar="N", help="newest N runs (default 50)")
    parser.add_argument("--state", choices=STATES, help="only runs in this state")


def run(args: argparse.Namespace) -> int:
    fleet_source.check_alone(args)
    if args.prometheus:
        return across(fleet_source.opened(args), args)
    with run_source.open_runs(args) as source:
        rows = source.rows(limit=args.limit, state=args.state)
    if args.json:
        sys.stdout.write(encode(rows).decode() + "\n")
        return 0
    if not rows:
        print("no runs yet; start one with: gpumon run -- python train.py", file=sys.stderr)
        return 0
    print(listed(rows, Terminal(sys.stdout)))
    return 0


def listed(rows: Sequence[RunRow], on: Terminal) -> str:
    """One line a run; a column that says nothing about any of them is left out."""
    told = {"ranks": any(row.ranks != 1 for row in rows), "lost": any(row.lost for row in rows)}
    shown = [at for at, name in enumerate(HEAD) if told.get(name, True)]
    names = [HEAD[at] for at in shown]
    return table(
        names,
        [[_line(row)[at] for at in shown] for row in rows],
        right=[at for at, name in enumerate(names) if name in FIGURES],
        below=names.index("finding"),
        spare=[names.index(name) for name in SPARE if name in names],
        tones=[row.state for row in rows],
        on=on,
    )


HEAD = ("run", "name", "state", "ranks", "steps", "lost", "samples/s", "step", "started", "finding")
FIGURES = ("ranks", "steps", "lost", "samples/s", "step", "started")
SPARE = ("lost", "ranks", "started", "step")
"""What a narrow terminal does without, first to last."""


def _line(row: RunRow) -> tuple[str, ...]:
    return (
        row.run,
        row.name,
        row.state,
        whole(row.ranks),
        whole(row.steps),
        whole(row.lost),
        number(row.samples_per_s),
        seconds(row.step_p50_s),
        ago(row.started),
        row.findings[0] if row.findings else ABSENT,
    )


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return value
