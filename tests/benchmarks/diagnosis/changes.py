"""Every change that was shown, applied to a copy of its script, and both trained: does it do what it says?"""

from __future__ import annotations

import math
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.diagnosis import rows
from tests.benchmarks.diagnosis.catalog import Case
from tests.benchmarks.diagnosis.corpus import CASES
from tests.integration.advice.changes import without_and_with

KEPT = rows.FOLDER / "changes.json"
ROUNDING = 1e-3
"""Of the loss, after forty steps with another order of additions."""


def kept() -> list[dict[str, Any]]:
    return rows.read(KEPT) or []


def check_all(only: tuple[str, ...] = (), seconds: float = math.inf) -> None:
    """All changes of the rows that were measured (or of the scripts named), as many as fit; what was checked
    already is not checked again."""
    begun, done = time.monotonic(), kept()
    for case in CASES:
        result = rows.kept(case) if not only or case.script in only else None
        for remedy in result.remedies if result and not case.library else []:
            entry = {"script": case.name, **remedy}
            known = any(entry.items() <= one.items() for one in done)
            if not known and time.monotonic() - begun < seconds:
                done.append({**entry, **check(case, remedy)})
                outcome = done[-1]["outcome"]
                print(f"{outcome:<10}{case.name:<24}{remedy['id']:<34}{remedy['effect']}", flush=True)
                rows.write(KEPT, done)


def check(case: Case, remedy: dict[str, Any]) -> dict[str, Any]:
    """How far the losses of both are from each other, and whether that is what the remedy said."""
    with tempfile.TemporaryDirectory(prefix="gpumon-changes-") as name:
        try:
            before, after = without_and_with(case.path, remedy["change"], Path(name))
        except AssertionError as error:
            return {"outcome": "fails", "why": str(error)[-300:]}
    apart = _apart(before, after)
    allowed = {"identical": 0.0, "rounding": ROUNDING}.get(remedy["effect"], math.inf)
    return {"outcome": "as said" if apart <= allowed else "differs", "apart": apart}


def _apart(before: list[float], after: list[float]) -> float:
    """The largest difference of two losses, relative where they are large; infinite when the numbers of steps
    differ."""
    if len(before) != len(after):
        return math.inf
    return max(abs(one - other) / max(1.0, abs(one)) for one, other in zip(before, after, strict=True))
