"""Run a script on the stand-in, bare or under `gpumon run`; the device's account is of the same run."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import device
from tests.benchmarks.device.case import Case
from tests.benchmarks.diagnosis.gpus import CLEAN
from tests.nvml.standin import StandIn

DEADLINE = 170.0
WARM_STEPS = 5
"""As in the device's own account: this many steps, or a quarter of a short run, are not steady."""
CARD = {**CLEAN, "utilization": 0, "memory_used": 0}
"""Readings of a card without trouble of its own, until the device tells what it does."""
NOT_FED = ("pcie_tx", "pcie_rx")
"""Readings that do not follow the device: a false one is worse than none."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The steady steps of one run, by wall clock and by the device's account."""

    step_seconds: float
    steps: int
    idle_share: float
    causes: dict[str, float]
    """Share of the time the device was idle for data, launch, sync or copy."""


@dataclass(frozen=True, slots=True)
class Run:
    """One finished run: its truth, None if it failed, and gpumon's report if it was watched."""

    truth: Truth | None
    error: str = ""
    report: dict[str, Any] | None = None


def bare(case: Case, *extra: str) -> Run:
    """The script by itself."""
    return _run(case, [sys.executable, str(case.path), *extra], {})


def watched(case: Case) -> Run:
    """The script under `gpumon run`, with an NVML that tells what the device does."""
    cards = case.speeds.devices
    with tempfile.TemporaryDirectory(prefix="gpumon-device-bench-") as name, StandIn(gpus=cards) as nvml:
        folder = Path(name)
        (folder / "rings").mkdir()
        for index in range(cards):
            nvml.gpu(index).set(**CARD)
            nvml.gpu(index).absent(*NOT_FED)
        places = {"GPUMON_DIR": str(folder / "rings"), "XDG_STATE_HOME": str(folder / "state")}
        target = folder / "report.json"
        options = ["run", "--no-summary", "--json", str(target), "--"]
        command = [sys.executable, "-m", "monitor.cli.main", *options, sys.executable, str(case.path)]
        run = _run(case, command, {**places, **nvml.environment()})
        report = json.loads(target.read_text()) if target.exists() else None
        return Run(run.truth, run.error, report)


def _run(case: Case, command: list[str], env: dict[str, str]) -> Run:
    with tempfile.TemporaryDirectory(prefix="gpumon-device-truth-") as name:
        out = Path(name)
        outside = {"PYTHONUNBUFFERED": "", "HF_HUB_OFFLINE": "1"}
        result = device.run_command(command, case.speeds, env={**outside, **env}, out=out, timeout=DEADLINE)
        if result.returncode or not result.truths:
            return Run(None, f"exit code {result.returncode}: {result.stderr[-600:]}")
        return Run(truth_of(result.truth, case.device))


def truth_of(told: dict[str, Any], index: int) -> Truth | None:
    """The steady part of what the device wrote down."""
    mine = next((one for one in told["devices"] if one["index"] == index), None)
    if mine is None or not mine["steady"]:
        return None
    marks = len(mine["steps"]) + 1
    steps = marks - 1 - min(WARM_STEPS, marks // 4)
    account = mine["steady"]
    idle = {cause: seconds / account["seconds"] for cause, seconds in account["idle"].items()}
    return Truth(account["seconds"] / steps, steps, sum(idle.values()), idle)


def cores() -> int:
    return len(os.sched_getaffinity(0))
