"""Run one script under `gpumon run`, naive and fixed, and read what was found, predicted and gained."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.benchmarks.diagnosis.catalog import Case

DEADLINE = 120.0
UNSTEADY = 1.25
"""A median step this many times the shortest: something else had the cores, or the host had."""


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
    seconds: float | None = None
    peer: str = ""
    peer_points: float | None = None


def environment(folder: Path) -> dict[str, str]:
    """A private ring directory and history, one compute thread unless the script sets its own."""
    return {
        **os.environ,
        "GPUMON_DIR": str(folder / "rings"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "",
    }


def report_of(case: Case, *extra: str) -> dict[str, Any]:
    """The JSON report of one run of the script."""
    with tempfile.TemporaryDirectory(prefix="gpumon-diagnosis-") as name:
        folder = Path(name)
        (folder / "rings").mkdir()
        target = folder / "report.json"
        command = [
            sys.executable,
            "-m",
            "monitor.cli.main",
            "run",
            "--no-summary",
            "--json",
            str(target),
            "--",
        ]
        command += [sys.executable, str(case.path), *extra]
        done = subprocess.run(
            command, env=environment(folder), timeout=DEADLINE, capture_output=True, text=True, cwd=_root()
        )
        if not target.exists():
            return {"findings": [], "verdict": f"no report: {done.stderr[-300:]}"}
        answer: dict[str, Any] = json.loads(target.read_text())
        return answer


def _root() -> Path:
    return Path(__file__).parents[3]


def sample_seconds(report: dict[str, Any], *, whole: bool = False) -> float | None:
    """Seconds a sample (a step where the batch is not known), everything in the loop included."""
    steps, ended, started = report.get("steps"), report.get("ended"), report.get("started")
    phases = report.get("phases") or []
    period = sum(phase["mean_seconds"] for phase in phases)
    if not steps or not ended or not started or period <= 0:
        return None
    if whole:
        period = sum(phase["total_seconds"] for phase in phases) / steps
    return period / (report.get("batch_size") or 1)


def unsteady(report: dict[str, Any]) -> bool:
    """Whether the usual steps of the run differ more than they do on a machine left alone (with workers
    they always do). Says nothing about predictions, so choosing by it favours none."""
    times, loader = report.get("step_seconds") or {}, (report.get("config") or {}).get("loader") or {}
    if loader.get("num_workers") or not times.get("min") or not times.get("p50"):
        return False
    return bool(times["p50"] > UNSTEADY * times["min"])


def faster(case: Case, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The run that was disturbed less."""
    first, second = (sample_seconds(report, whole=case.whole) for report in (one, other))
    return other if first is None or (second is not None and second < first) else one


def judge(case: Case, naive: dict[str, Any], fixed: dict[str, Any] | None) -> Result:
    """Compare what was found with what is wrong, and what was promised with what came."""
    found = [finding["id"] for finding in naive["findings"]]
    serious = [
        finding["id"] for finding in naive["findings"] if finding["severity"] in ("warning", "critical")
    ]
    result = Result(case.script, case.cause, list(case.expected), found, serious, held_out=case.held_out)
    result.title = naive["findings"][0]["title"] if naive["findings"] else naive["verdict"]
    result.top1 = (
        (found[:1] == ["healthy.ok"] and not serious)
        if case.healthy
        else bool(set(found[:1]) & set(case.expected))
    )
    result.top3 = result.top1 if case.healthy else bool(set(found[:3]) & set(case.expected))
    if fixed is not None and case.comparable:
        _verify(result, case, naive, fixed)
    return result


def _verify(result: Result, case: Case, naive: dict[str, Any], fixed: dict[str, Any]) -> None:
    before, after = sample_seconds(naive, whole=case.whole), sample_seconds(fixed, whole=case.whole)
    named = next((f for f in naive["findings"] if f["id"] in case.expected and f.get("speedup")), None)
    if before is None or after is None:
        return
    result.realised = before / after
    if named is None:
        return
    speedup = named["speedup"]
    result.predicted = {key: speedup[key] for key in ("low", "likely", "high")}
    result.inside = speedup["low"] * 0.97 <= result.realised <= speedup["high"] * 1.03
    result.error = speedup["likely"] / result.realised - 1.0
    result.width = speedup["high"] / speedup["low"]
