"""One recipe on one kind of CPU, in a process of its own: `… trainers.one RECIPE SECONDS`.

Prints the figures as JSON. The kind is set by the environment before torch is loaded.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.trainers import measure
from tests.benchmarks.trainers.ladders import BEST, LADDERS, Ladder, Row, ends, rows
from trainers.tuning import products


def size_figures(ladder: Ladder, which: str, folder: Path, seconds: float) -> dict[str, Any]:
    """The rows of one size: all of them on the small model, the three rungs on the default one."""
    size: dict[str, Any] = ladder.small if which == "small" else {}
    chosen = rows(ladder) if which == "small" else ends(ladder)
    subjects = [measure.build(ladder, row, size, folder) for row in chosen]
    difference = measure.check_equal(subjects, ladder.tolerance)
    measure.measure_steps(subjects, ladder.steps[which], seconds)
    measure.measure_data(subjects, ladder.steps[which], seconds / 4)
    best = next(subject for subject in subjects if subject.row.label == BEST)
    found = {
        "size": size,
        "largest_loss_difference": difference,
        "on_in_best": sorted(best.trainer.recipe.switches),
        "rows": [row_figures(subject, subjects[0]) for subject in subjects],
    }
    measure.close(subjects)
    return found


def row_figures(subject: measure.Subject, naive: measure.Subject) -> dict[str, Any]:
    row: Row = subject.row
    low, ratio, high = measure.interval(naive.step_seconds, subject.step_seconds)
    data_low, data_ratio, data_high = measure.interval(naive.data_seconds, subject.data_seconds)
    return {
        "label": row.label,
        "seed": row.seed,
        "same_losses": row.compare,
        "rounds": len(subject.step_seconds),
        "samples_per_second": round(1 / measure.median(subject.step_seconds), 1),
        "ratio": round(ratio, 3),
        "interval": [round(low, 3), round(high, 3)],
        "data_samples_per_second": round(1 / measure.median(subject.data_seconds), 1),
        "data_ratio": round(data_ratio, 3),
        "data_interval": [round(data_low, 3), round(data_high, 3)],
    }


def main(name: str, seconds: float) -> int:
    """Measure; each part takes at most so many seconds, and less when its ratios are known earlier."""
    torch.set_num_threads(1)
    ladder = next(ladder for ladder in LADDERS if ladder.name == name)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        result = {
            "machine": products.machine(),
            "default": size_figures(ladder, "default", place, seconds),
            "small": size_figures(ladder, "small", place, seconds),
            "phases": {row.label: measure.phases(ladder, row, {}, place) for row in ends(ladder)},
        }
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
