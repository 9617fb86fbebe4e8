"""One part of a recipe's benchmark, in a process of its own: `… trainers.one RECIPE PART SECONDS FOLDER`.

PART is default (the three rungs), small (every single optimization) or compile. Prints the figures as JSON.
The kind of CPU is set by the environment before torch is loaded; generated data is kept in FOLDER.
"""

from __future__ import annotations

import contextlib
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from tests.benchmarks.trainers import measure
from tests.benchmarks.trainers.ladders import (
    BEST,
    BEST_ALL,
    COMPILED,
    DOCUMENT,
    LADDERS,
    NAIVE_ALL,
    Ladder,
    Row,
    defaults,
    ends,
    rows,
)
from tests.benchmarks.trainers.subject import Apart
from trainers.tuning import products


def size_figures(
    ladder: Ladder, chosen: list[Row], which: str, folder: Path, seconds: float
) -> dict[str, Any]:
    """The figures of these rows at the small or the default size."""
    size: dict[str, Any] = ladder.small if which == "small" else {}
    with contextlib.ExitStack() as stack:
        subjects = [stack.enter_context(closing(Apart(ladder, row, size, folder))) for row in chosen]
        return _figures(ladder, subjects, which, size, seconds)


def _figures(
    ladder: Ladder, subjects: list[Apart], which: str, size: dict[str, Any], seconds: float
) -> dict[str, Any]:
    difference = measure.check_equal(subjects, ladder.tolerance)
    measure.measure_steps(subjects, ladder.steps[which], seconds)
    measure.measure_data(subjects, ladder.steps[which], seconds / 4)
    by_label = {subject.row.label: subject for subject in subjects}
    best, document = by_label[BEST], by_label[DOCUMENT]
    above = measure.interval(document.step_seconds, best.step_seconds)
    found = {
        "size": size,
        "largest_loss_difference": difference,
        "on_in_best": best.facts["switches"],
        "arithmetic": subjects[0].ask("arithmetic"),
        "over_document": [round(value, 3) for value in above],
        "rows": [row_figures(subject, subjects[0]) for subject in subjects],
    }
    if which == "default":
        marked = [by_label[row.label] for row in ends(ladder)]
        found["phases"] = {s.row.label: s.ask("phases", 4 * ladder.steps[which]) for s in marked}
        found["left"] = best.ask("left", 4 * ladder.steps[which])
        found["batch_size"] = best.facts["batch_size"]
        if BEST_ALL in by_label:
            every = measure.interval(by_label[NAIVE_ALL].step_seconds, by_label[BEST_ALL].step_seconds)
            found["all_cores"] = [round(value, 3) for value in every]
    return found


def row_figures(subject: Apart, first: Apart) -> dict[str, Any]:
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


def compile_part(ladder: Ladder, folder: Path, seconds: float) -> dict[str, Any]:
    """torch.compile over best: what it gains, what it costs before the first step."""
    with (
        closing(Apart(ladder, ends(ladder)[-1], {}, folder)) as best,
        closing(Apart(ladder, COMPILED, {}, folder)) as compiled,
    ):
        measure.measure_steps([best, compiled], ladder.steps["default"], seconds / 2)
    low, ratio, high = measure.interval(best.step_seconds, compiled.step_seconds)
    samples = best.facts["batch_size"]
    saved = samples * (measure.median(best.step_seconds) - measure.median(compiled.step_seconds))
    extra = compiled.facts["build_seconds"] - best.facts["build_seconds"]
    return {
        "in_effect": compiled.facts["compiled"],
        "said": compiled.facts["said"],
        "compile_seconds": round(extra, 1),
        "ratio": round(ratio, 3),
        "interval": [round(low, 3), round(high, 3)],
        "steps_to_pay": round(extra / saved) if saved > 0 else None,
    }


def main(name: str, what: str, seconds: float, folder: Path) -> int:
    """Measure; the rounds take at most so many seconds, and less when the ratios are known earlier."""
    torch.set_num_threads(1)
    ladder = next(ladder for ladder in LADDERS if ladder.name == name)
    if what == "default":
        found = size_figures(ladder, defaults(ladder), "default", folder, seconds)
    elif what == "compile":
        found = compile_part(ladder, folder, seconds)
    else:
        found = size_figures(ladder, rows(ladder), "small", folder, seconds)
    print(json.dumps({"machine": products.machine(), **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])))
