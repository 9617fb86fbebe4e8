"""`gpumon runs`: list training runs, live and past."""

from __future__ import annotations

import argparse
import sys
import time

from monitor.cli import catalog
from monitor.cli.table import ago, number, seconds, table
from monitor.runs.listing import RunRow
from monitor.snapshot import encode

STATES = ("running", "stalled", "ended", "failed", "killed")


def configure(parser: argparse.ArgumentParser) -> None:
    catalog.configure(parser)
    parser.add_argument("--limit", type=_positive, default=50, metavar="N", help="newest N runs (default 50)")
    parser.add_argument("--state", choices=STATES, help="only runs in this state")


def run(args: argparse.Namespace) -> int:
    rows = catalog.open_catalog(args).rows(limit=args.limit, state=args.state)
    if args.json:
        sys.stdout.write(encode(rows).decode() + "\n")
        return 0
    if not rows:
        print("no runs yet; start one with: gpumon run -- python train.py", file=sys.stderr)
        return 0
    print(table(HEAD, [_line(row) for row in rows], right=(3, 4, 5, 6, 7)))
    return 0


HEAD = ("run", "name", "state", "ranks", "steps", "lost", "samples/s", "step", "started", "finding")


def _line(row: RunRow) -> tuple[str, ...]:
    return (
        row.run,
        row.name,
        row.state,
        str(row.ranks),
        str(row.steps),
        str(row.lost) if row.lost else "0",
        number(row.samples_per_s),
        seconds(row.step_p50_s),
        ago(time.time() - row.started),
        row.findings[0] if row.findings else "—",
    )


def _positive(text: str) -> int:
    value = int(text) if text.isdigit() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of runs")
    return value
