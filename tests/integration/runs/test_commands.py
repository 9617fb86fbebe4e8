"""`gpumon runs`, `show`, `report` and `compare` as a user types them, without a daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE
from tests.integration.runs.processes import ROOT

TRAIN = """
import sys, time
from sdk import TrainingMonitor
with TrainingMonitor("toy", batch_size=32) as monitor:
    for step in range(int(sys.argv[2])):
        with monitor.phase("data"):
            time.sleep(float(sys.argv[1]))
        with monitor.phase("forward"):
            time.sleep(0.002)
        monitor.step()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs: a slow one and its faster successor."""
    directory = tmp_path_factory.mktemp("runs")
    (directory / "rings").mkdir()
    for data in ("0.006", "0.001"):
        code = subprocess.run(
            [sys.executable, "-c", TRAIN, data, "200"], cwd=ROOT, env=environment(directory), timeout=PATIENCE
        )
        assert code.returncode == 0
    return directory


def environment(place: Path) -> dict[str, str]:
    own = {"GPUMON_DIR": str(place / "rings"), "GPUMON_STORE": str(place / "history.db")}
    rest = {name: value for name, value in os.environ.items() if not name.startswith("GPUMON_")}
    return {**rest, **own, "GPUMON_LISTEN": "127.0.0.1:1"}


def gpumon(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "monitor.cli.main", *words],
        cwd=ROOT,
        env=environment(place),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_runs_json_keeps_its_promise(place: Path) -> None:
    rows = json.loads(gpumon(place, "runs", "--json").stdout)
    assert len(rows) == 2
    for row in rows:
        assert {"run", "name", "state", "ranks", "steps", "lost", "started", "samples_per_s"} <= row.keys()
        assert (row["name"], row["state"], row["ranks"], row["steps"], row["lost"]) == (
            "toy",
            "ended",
            1,
            200,
            0,
        )
    assert rows[0]["samples_per_s"] > rows[1]["samples_per_s"] > 1000
    assert json.loads(gpumon(place, "runs", "--json", "--limit", "1").stdout) == rows[:1]
    assert json.loads(gpumon(place, "runs", "--json", "--state", "killed").stdout) == []
    assert "toy" in gpumon(place, "runs").stdout


def test_show(place: Path) -> None:
    body = json.loads(gpumon(place, "show", "last", "--json").stdout)
    assert body["run"] == body["id"] and isinstance(body["findings"], list) and body["steps"] == 200
    assert sum(phase["share"] for phase in body["phases"]) == pytest.approx(1.0)
    text = gpumon(place, "show", body["id"][:-1]).stdout
    assert "where the time goes" in text and "forward" in text


def test_unknown_run_is_one_sentence_with_near_matches(place: Path) -> None:
    answer = gpumon(place, "show", "toi")
    assert answer.returncode == 2 and answer.stdout == ""
    assert "there is no run 'toi'; similar: toy" in answer.stderr and "Traceback" not in answer.stderr


def test_compare_and_its_exit_code(place: Path) -> None:
    """How much faster it was depends on how busy the machine is; that the bar decides does not."""
    found = json.loads(gpumon(place, "compare", "last~1", "last", "--json").stdout)
    speedup = found["speedup"]
    assert found["low"] < speedup < found["high"]
    assert gpumon(place, "compare", "last~1", "last", "--fail-below", str(0.9 * speedup)).returncode == 0
    below = gpumon(place, "compare", "last~1", "last", "--fail-below", str(1.1 * speedup))
    assert below.returncode == 1 and "is below the bar of" in below.stderr and "in samples/s" in below.stdout


def test_report_writes_one_file_and_says_where(place: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    answer = gpumon(place, "report", "-o", str(target))
    assert answer.returncode == 0 and answer.stdout == ""
    assert str(target) in answer.stderr
    assert "Where every second went" in target.read_text(encoding="utf-8")
    assert gpumon(place, "report", "last", "--md").stdout.startswith("# toy (ended)")
    plain = json.loads(gpumon(place, "report", "last~1", "--json").stdout)
    assert plain["run"]["steps"] == 200 and plain["account"]["parts"]
    assert "<svg" in gpumon(place, "report", "-o", "-").stdout


def test_compare_as_a_file(place: Path, tmp_path: Path) -> None:
    target = tmp_path / "compare.html"
    answer = gpumon(place, "compare", "last~1", "last", "--html", str(target))
    assert answer.returncode == 0 and "in samples/s" in answer.stdout
    assert "The same work?" in target.read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_one_sentence(place: Path, tmp_path: Path) -> None:
    answer = gpumon(place, "report", "-o", str(tmp_path / "no" / "where.html"))
    assert answer.returncode == 2 and "cannot write" in answer.stderr and "Traceback" not in answer.stderr
    assert gpumon(place, "report", "--md", "--json").returncode == 2


def test_a_daemon_that_was_named_must_answer(place: Path) -> None:
    answer = gpumon(place, "runs", "--connect", "http://127.0.0.1:1")
    assert answer.returncode == 3 and "no gpumon daemon answers" in answer.stderr


def test_nothing_there_yet(tmp_path: Path) -> None:
    assert gpumon(tmp_path, "runs", "--json").stdout.strip() == "[]"
    assert gpumon(tmp_path, "show", "last").returncode == 2
    assert "Traceback" not in gpumon(tmp_path, "compare", "a", "b").stderr
