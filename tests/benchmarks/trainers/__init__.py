"""`make bench-trainers`: for each recipe the ladder naive → document → best, measured here and now.

    python -m tests.benchmarks.trainers [recipe …]

Writes docs/benchmarks/trainers_<recipe>.{json,md,png}. One torch thread; medians of interleaved
rounds; the losses of every row are checked against the naive ones before a ratio is printed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[3] / "docs" / "benchmarks"


def main(chosen: list[str] | None = None) -> int:
    import torch

    from tests.benchmarks.trainers.ladders import LADDERS

    torch.set_num_threads(1)
    OUT.mkdir(parents=True, exist_ok=True)
    failed = False
    for ladder in LADDERS:
        if chosen and ladder.recipe.name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            failed |= not run(ladder, Path(folder))
    return int(failed)


def run(ladder: Any, folder: Path) -> bool:
    """One recipe: measure, write, say. Whether it met its target."""
    from tests.benchmarks.trainers import report
    from tests.benchmarks.trainers.ladders import not_measured, rows

    begun = time.perf_counter()
    all_rows = rows(ladder)
    small, difference = _measure(ladder, all_rows, ladder.small, folder, with_data=True)
    large, _ = _measure(ladder, _ends(all_rows), ladder.large, folder, with_data=False)
    result = report.figures(ladder, small, large, difference)
    result["seconds"] = round(time.perf_counter() - begun, 1)
    result["not_measured"] = not_measured(ladder)
    name = f"trainers_{ladder.recipe.name}"
    (OUT / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = report.markdown(ladder, result)
    (OUT / f"{name}.md").write_text(text, encoding="utf-8")
    report.picture(ladder, result, OUT / f"{name}.png")
    print(text, flush=True)
    return bool(result["met"])


def _ends(all_rows: list[Any]) -> list[Any]:
    return [
        row
        for row in all_rows
        if row.label.startswith(("naive", "document:", "best:")) and " + " not in row.label
    ]


def _measure(ladder: Any, chosen: list[Any], size: dict[str, Any], folder: Path, *, with_data: bool) -> Any:
    from tests.benchmarks.trainers import measure

    subjects = [measure.build(ladder, row, size, folder) for row in chosen]
    difference = measure.check_equal(subjects, ladder.tolerance)
    measure.measure_steps(subjects, ladder.steps, 18.0 if with_data else 8.0)
    if with_data:
        measure.measure_data(subjects, ladder.steps, 7.0)
    measure.close(subjects)
    return subjects, difference


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
