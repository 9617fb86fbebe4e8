"""One part of a recipe's benchmark, in a process of its own: `… trainers.one RECIPE PART SECONDS FOLDER`.

PART is default (the three rungs), small (every single optimization) or compile. Prints the figures as JSON.
The kind of CPU is set by the environment before torch is loaded; generated data is kept in FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.trainers import measure
from tests.benchmarks.trainers.ladders import (
    BEST,
    COMPILED,
    DOCUMENT,
    LADDERS,
    Ladder,
    Row,
    defaults,
    ends,
    rows,
)
from trainers.tuning import products


def size_figures(
    ladder: Ladder, chosen: list[Row], which: str, folder: Path, seconds: float
) -> dict[str, Any]:
    """The figures of these rows at the small or the default size."""
    size: dict[str, Any] = ladder.small if which == "small" else {}
    subjects = [measure.build(ladder, row, size, folder) for row in chosen]
    difference = measure.check_equal(subjects, ladder.tolerance)
    measure.measure_steps(subjects, ladder.steps[which], seconds)
    measure.measure_data(subjects, ladder.steps[which], seconds / 4)
    by_label = {subject.row.label: subject for subject in subjects}
    best, document = by_label[BEST], by_label[DOCUMENT]
    above = measure.interval(document.step_seconds, best.step_seconds)
    found = {
        "size": size,
        "largest_loss_difference": difference,
        "on_in_best": sorted(best.trainer.recipe.switches),
        "arithmetic": measure.arithmetic(subjects[0]),
        "over_document": [round(value, 3) for value in above],
        "rows": [row_figures(subject, subjects[0]) for subject in subjects],
    }
    measure.close(subjects)
    return found


def row_figures(subject: measure.Subject, first: measure.Subject) -> dict[str, Any]:
    row: Row = subject.row
    low, ratio, high = measure.interval(first.step_seconds, subject.step_seconds)
    data_low, data_ratio, data_high = measure.interval(first.data_seconds, subject.data_seconds)
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


def default_part(ladder: Ladder, folder: Path, seconds: float) -> dict[str, Any]:
    """The headline, and where the time of each rung goes."""
    found = size_figures(ladder, defaults(ladder), "default", folder, seconds)
    found["phases"] = {row.label: measure.phases(ladder, row, {}, folder) for row in ends(ladder)}
    return found


def compile_part(ladder: Ladder, folder: Path, seconds: float) -> dict[str, Any]:
    """torch.compile over best: what it gains, what it costs before the first step."""
    best, compiled = (measure.build(ladder, row, {}, folder) for row in (ends(ladder)[-1], COMPILED))
    report = compiled.trainer.compiled
    subjects = [best, compiled]
    measure.measure_steps(subjects, ladder.steps["default"], seconds / 2)
    low, ratio, high = measure.interval(best.step_seconds, compiled.step_seconds)
    samples = best.trainer.config.batch_size
    saved = samples * (measure.median(best.step_seconds) - measure.median(compiled.step_seconds))
    extra = compiled.build_seconds - best.build_seconds
    found = {
        "in_effect": report.failed is None and report.graphs > 0,
        "said": report.sentence(),
        "compile_seconds": round(extra, 1),
        "ratio": round(ratio, 3),
        "interval": [round(low, 3), round(high, 3)],
        "steps_to_pay": round(extra / saved) if saved > 0 else None,
    }
    measure.close(subjects)
    return found


def main(name: str, what: str, seconds: float, folder: Path) -> int:
    """Measure; the rounds take at most so many seconds, and less when the ratios are known earlier."""
    torch.set_num_threads(1)
    ladder = next(ladder for ladder in LADDERS if ladder.name == name)
    if what == "default":
        found = default_part(ladder, folder, seconds)
    elif what == "compile":
        found = compile_part(ladder, folder, seconds)
    else:
        found = size_figures(ladder, rows(ladder), "small", folder, seconds)
    print(json.dumps({"machine": products.machine(), **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])))
