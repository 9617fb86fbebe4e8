"""Ten scripts ten times each, nothing changed: is the first cause always the same?"""

from __future__ import annotations

import time
from typing import Any

from tests.benchmarks.diagnosis import rows
from tests.benchmarks.diagnosis.corpus import CASES
from tests.benchmarks.diagnosis.measure import report_of

KEPT = rows.FOLDER / "steadiness.json"
SCRIPTS = (
    "short_epochs", "credit_rows", "deep_norms", "verbose_log", "mean_teacher",
    "plain_adam", "rate_limit", "sms_spam", "ok_tabular", "ok_gan",
)  # fmt: skip
"""Chosen before the first run for being short, one of a kind, two of them healthy."""
TIMES = 10


def kept() -> dict[str, list[str]]:
    """Script → the first finding of each of its runs."""
    found: dict[str, Any] = rows.read(KEPT) or {}
    return found


def measure_all(only: tuple[str, ...] = (), seconds: float = float("inf")) -> None:
    """As many runs as fit, all scripts (or those named) in turn."""
    begun, found = time.monotonic(), kept()
    cases = {case.script: case for case in CASES}
    for _ in range(TIMES):
        for script in only or SCRIPTS:
            seen = found.setdefault(script, [])
            if len(seen) < TIMES and time.monotonic() - begun < seconds:
                findings = report_of(cases[script])["findings"]
                seen.append(findings[0]["id"] if findings else "nothing")
                rows.write(KEPT, found)
    for script, seen in found.items():
        print(f"{script:<24}{len(seen):>3} runs: {', '.join(sorted(set(seen)))}", flush=True)


def equal(seen: list[str]) -> bool:
    return len(seen) == TIMES and len(set(seen)) == 1
