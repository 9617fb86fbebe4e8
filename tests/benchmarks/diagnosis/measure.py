"""Run one script under `gpumon run`, and read what was found and predicted, beside what is true."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.diagnosis import truth
from tests.benchmarks.diagnosis.catalog import Case

DEADLINE = 180.0
SLACK = 0.03
"""How far outside its range a gain may come out and still count: what a wall clock itself is worth."""


@dataclass(slots=True)
class Result:
    """What one case gave."""

    script: str
    cause: str
    expected: list[str]
    findings: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    """Warnings and worse."""
    title: str = ""
    predicted: dict[str, float] | None = None
    realised: float | None = None
    top1: bool = False
    top3: bool = False
    inside: bool | None = None
    error: float | None = None
    """likely / realised - 1."""
    width: float | None = None
    """high / low: how much the range leaves open."""
    held_out: bool = False
    library: bool = False
    fresh: bool = False
    bare: list[float | None] = field(default_factory=list)
    """Seconds a step of the bare script takes: naive, fixed."""
    remedies: list[dict[str, Any]] = field(default_factory=list)
    """Id, effect and change of every finding that changes lines."""
    peer: str = ""
    peer_points: float | None = None

    @property
    def vain(self) -> bool:
        """By the wall clock its remedy gains nothing on this machine: what was meant as a cause is none."""
        return bool(self.expected) and self.realised is not None and self.realised < 1.0 + SLACK

    @property
    def sick(self) -> bool:
        return bool(self.expected) and not self.vain


def environment(folder: Path) -> dict[str, str]:
    """A private ring directory and history, one compute thread unless the script sets its own."""
    return {
        **os.environ,
        "GPUMON_DIR": str(folder / "rings"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(truth.ROOT),
        "PYTHONUNBUFFERED": "",
    }


def report_of(case: Case) -> dict[str, Any]:
    """The JSON report of one run of the script."""
    with tempfile.TemporaryDirectory(prefix="gpumon-diagnosis-") as name:
        folder = Path(name)
        (folder / "rings").mkdir()
        target = folder / "report.json"
        ours = [sys.executable, "-m", "monitor.cli.main", "run", "--no-summary", "--json", str(target), "--"]
        try:
            done = subprocess.run(
                [*ours, *case.command],
                env=environment(folder), timeout=DEADLINE, capture_output=True, text=True, cwd=folder,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"findings": [], "verdict": "no report in time"}
        if not target.exists():
            return {"findings": [], "verdict": f"no report: {done.stderr[-300:]}"}
        answer: dict[str, Any] = json.loads(target.read_text())
        return answer


def run_case(case: Case) -> Result:
    """The bare script, the watched one, the bare one with its remedy: neighbours in time see the same
    machine."""
    compared = not case.healthy and case.comparable
    naive = truth.step_seconds(case) if compared else None
    result = judge(case, report_of(case))
    if compared:
        result.bare = [naive, truth.step_seconds(case, "--fixed")]
        result.realised = truth.realised(case, *result.bare)
        _verify(result)
    return result


def judge(case: Case, report: dict[str, Any]) -> Result:
    """Compare what was found with what is wrong."""
    findings = report["findings"]
    found = [one["id"] for one in findings]
    serious = [one["id"] for one in findings if one["severity"] in ("warning", "critical")]
    result = Result(
        case.name, case.cause, list(case.expected), found, serious,
        held_out=case.held_out, library=case.library, fresh=case.fresh,
    )  # fmt: skip
    result.title = findings[0]["title"] if findings else report["verdict"]
    result.top1 = bool(found) and not serious if case.healthy else bool(set(found[:1]) & set(case.expected))
    result.top3 = result.top1 if case.healthy else bool(set(found[:3]) & set(case.expected))
    result.remedies = [
        {"id": one["id"], "effect": one["remedy"]["effect"], "change": one["remedy"]["change"]}
        for one in findings
        if one.get("remedy") and one["remedy"]["change"].startswith("@@ ")
    ]
    named = next((one for one in findings if one["id"] in case.expected and one.get("speedup")), None)
    if named is not None:
        result.predicted = {key: named["speedup"][key] for key in ("low", "likely", "high")}
    return result


def _verify(result: Result) -> None:
    """What was promised beside what came."""
    if result.predicted is None or result.realised is None:
        return
    low, likely, high = (result.predicted[key] for key in ("low", "likely", "high"))
    result.inside = low * (1 - SLACK) <= result.realised <= high * (1 + SLACK)
    result.error = likely / result.realised - 1.0
    result.width = high / low
