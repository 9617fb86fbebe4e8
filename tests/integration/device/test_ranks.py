"""Ranks that exchange gradients on the stand-in: whom the others wait for, and how long the exchange runs
alone, against the stand-in's own account."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import device, warm
from tests.integration.device.test_lane import ATTEMPTS, SCRIPTS, matrices

POINTS = 0.10
"""The window has four steps, the truth all of them."""
ON_DEVICE = ("compute.amp_off", "compute.tf32_off", "compute.compile_off")


@dataclass(frozen=True)
class Seen:
    """By rank: the share of the time in which only the exchange ran, true and as reported."""

    truth: dict[int, float]
    ours: dict[int, float]
    findings: list[dict[str, Any]]

    @property
    def close(self) -> bool:
        return all(abs(self.truth[rank] - self.ours[rank]) <= POINTS for rank in (0, 1))

    @property
    def first(self) -> dict[str, Any]:
        return self.findings[0]


def watch(late: str, folder: Path) -> Seen:
    path = folder / "report.json"
    python = warm.python_with_device()
    launcher = [
        python,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        "--no-python",
        python,
    ]
    command = [sys.executable, "-m", "monitor.cli.main", "run", "--json", str(path), "--", *launcher]
    result = device.run_command([*command, str(SCRIPTS / "two_ranks.py"), late], matrices(1500), out=folder)
    assert result.returncode == 0, result.stderr[-3000:]
    report = json.loads(path.read_text())
    ours = {}
    for rank in report["ranks"]:
        assert rank["device"] is not None, report
        ours[rank["rank"]] = rank["device"]["exchange_seconds"] / sum(rank["device"]["time"].values())
    return Seen(_truth(result.truths), ours, report["findings"])


def _truth(truths: list[dict[str, Any]]) -> dict[int, float]:
    found = {}
    for one in truths:
        (only,) = one["devices"]
        found[only["index"]] = only["steady"]["exchange"] / only["steady"]["seconds"]
    return found


def until(late: str, folder: Path) -> Seen:
    """Several attempts: a crowded machine makes a rank late that is not."""
    tries = []
    for _ in range(ATTEMPTS):
        tries.append(watch(late, Path(tempfile.mkdtemp(dir=folder))))
        if tries[-1].close and (tries[-1].first["id"] == "distributed.straggler") == (late != "even"):
            return tries[-1]
    pytest.fail("\n".join(map(str, tries)))


def test_the_late_rank_is_named_and_the_others_wait_is_no_saving_of_theirs(
    tmp_path: Path, gpumon_dir: Path
) -> None:
    """GIVEN a second rank that is late at every exchange THEN it is named, with the phase that differs, and
    nothing is promised for the first rank's waiting."""
    seen = until("device", tmp_path)
    assert seen.truth[0] > seen.truth[1] + 0.2, "the first rank waits in the exchange"
    evidence = seen.first["evidence"]
    assert evidence["rank"] == 1 and evidence["phase"] != "data"
    assert "distributed.collective_wait" not in [finding["id"] for finding in seen.findings]
    promised = {one["id"]: one["speedup"]["likely"] for one in seen.findings[1:] if one.get("speedup")}
    assert all(gain < 1.25 for id, gain in promised.items() if id not in ON_DEVICE), promised


def test_even_ranks_have_no_straggler(tmp_path: Path, gpumon_dir: Path) -> None:
    seen = until("even", tmp_path)
    assert max(seen.truth.values()) < 0.2
