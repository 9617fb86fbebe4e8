"""`gpumon runs --prometheus URL`: runs over many machines, one line each."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from monitor.catalog.rows import RunRow, shown
from monitor.cli import fleet_source
from monitor.model.history import RunRecord
from monitor.model.run import Run
from monitor.model.snapshot import encode
from monitor.model.units import ABSENT, ago, number, seconds, whole
from monitor.terminal import Terminal, table

if TYPE_CHECKING:
    from monitor.fleet.fleet import Fleet

HEAD = (
    "run", "name", "user", "state", "nodes", "ranks", "steps", "samples/s", "step", "waited", "GPUs idle",
    "started", "finding",
)  # fmt: skip
FIGURES = (4, 5, 6, 7, 8, 9, 10, 11)
SPARE = (2, 11, 8, 6, 10)
"""What a narrow terminal does without, first to last: user, started, step, steps, GPUs idle."""


def across(fleet: Fleet, args: argparse.Namespace) -> int:
    pairs = fleet.rows(limit=args.limit, state=args.state)
    fleet_source.tell_notes(fleet)
    if args.json:
        sys.stdout.write(encode([_told(row, run) for row, run in pairs]).decode() + "\n")
    elif not pairs:
        print(
            f"no runs on the machines {fleet.api.url} scrapes; look further back with --since",
            file=sys.stderr,
        )
    else:
        tones = [row.state for row, _ in pairs]
        lines = [_line(row, run) for row, run in pairs]
        print(table(HEAD, lines, right=FIGURES, below=12, spare=SPARE, tones=tones, on=Terminal(sys.stdout)))
    return 0


def _told(row: RunRow, run: Run) -> dict[str, object]:
    """The keys of `gpumon runs --json`, then what is known of the machines."""
    whole_run = shown(RunRecord(run))
    more = {key: whole_run[key] for key in ("nodes", "waste", "missing_ranks", "world_size")}
    return {**{name: getattr(row, name) for name in row.__struct_fields__}, **more}


def _line(row: RunRow, run: Run) -> tuple[str, ...]:
    waste = run.waste
    return (
        row.run,
        row.name,
        row.user or ABSENT,
        row.state,
        whole(len(run.nodes)),
        f"{whole(row.ranks)}/{whole(run.world_size)}",
        whole(row.steps),
        number(row.samples_per_s),
        seconds(row.step_p50_s),
        f"{number(waste.waiting_rank_hours)} h" if waste and waste.waiting_rank_hours is not None else ABSENT,
        f"{number(waste.idle_gpu_hours)} h" if waste and waste.idle_gpu_hours is not None else ABSENT,
        ago(row.started),
        row.findings[0] if row.findings else ABSENT,
    )
