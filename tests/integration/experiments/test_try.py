"""`gpumon try` on real scripts: what it says, what it leaves alone, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE, wait_for
from tests.unit.sdk.knobs_scripts import PLAIN, SLOW_SAMPLES

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
WORKERS = "loader.num_workers=1 loader.persistent_workers=on"


class Bench:
    """A folder with a script and a checkpoint that must survive."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "rings").mkdir(mode=0o700)
        (folder / "scratch").mkdir()
        (folder / "work").mkdir()
        self.checkpoint = folder / "work" / "checkpoint.pt"
        self.checkpoint.write_text("weeks of training")

    def command(self, script: str, *options: str, arguments: tuple[str, ...] = ()) -> list[str]:
        (self.folder / "work" / "train.py").write_text(script)
        words = [sys.executable, "-m", "monitor.cli.main", "try", "--steps", "25", "--seconds", "0.5"]
        words += ["--blocks", "1", *options]
        return [*words, "--", sys.executable, "train.py", *arguments]

    def environment(self) -> dict[str, str]:
        own = {"GPUMON_DIR": str(self.folder / "rings"), "XDG_STATE_HOME": str(self.folder / "state")}
        return (
            os.environ | own | {"PYTHONPATH": str(ROOT), "GPUMON_TRY_SCRATCH": str(self.folder / "scratch")}
        )

    def run(self, script: str, *options: str, arguments: tuple[str, ...] = ()) -> tuple[int, str, str]:
        done = subprocess.run(
            self.command(script, *options, arguments=arguments), cwd=self.folder / "work",
            env=self.environment(), capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def answer(self, script: str, *options: str, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
        code, out, err = self.run(script, "--json", *options, arguments=arguments)
        assert code in (0, 1), err
        found: dict[str, Any] = json.loads(out)
        return found

    def check_untouched(self) -> None:
        assert self.checkpoint.read_text() == "weeks of training"
        assert {path.name for path in (self.folder / "work").iterdir()} == {"train.py", "checkpoint.pt"}
        assert self.left_behind() == []

    def left_behind(self) -> list[str]:
        """Processes that still run in the name of a trial, and files of it."""
        files = [path.name for path in (self.folder / "scratch").iterdir()]
        return files + [name for name in os.listdir("/proc") if name.isdecimal() and self._is_ours(name)]

    def _is_ours(self, pid: str) -> bool:
        try:
            return str(self.folder).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_arms_are_tried_and_nothing_of_the_users_is_written(bench: Bench) -> None:
    """One that works, one that fails and one that has nothing to change: each is told, none stops another."""
    arms = (WORKERS, "gc.collect=off", "optimizer.fused=on")
    answer = bench.answer(
        SLOW_SAMPLES, *(word for arm in arms for word in ("--set", arm)), arguments=("--no-workers",)
    )
    failed, useless, good = answer["results"]
    assert failed["ratio"] is None and "does not like workers" in failed["problem"]
    assert useless["ratio"] is None and useless["problem"] == "the script did not call `gc.collect`"
    assert good["problem"] == "" and good["runs"] == answer["baseline_runs"] == 2
    assert good["ratio"]["low"] <= good["ratio"]["likely"] <= good["ratio"]["high"]
    assert good["losses"]["same"] in ("equal", "rounding") and good["effect"] == "rounding"
    bench.check_untouched()


def test_in_a_copy_of_the_folder(bench: Bench) -> None:
    answer = bench.answer(SLOW_SAMPLES, "--isolate", "copy", "--set", WORKERS)
    [result] = answer["results"]
    assert result["losses"]["same"] == "equal" and result["effect"] == "identical"
    assert "a copy of this folder" in answer["isolation"]
    bench.check_untouched()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_gives_the_results_so_far_and_leaves_nothing(bench: Bench, number: signal.Signals) -> None:
    options = ("--set", "gc.freeze=on", "--blocks", "50")
    child = subprocess.Popen(
        bench.command(PLAIN, *options), cwd=bench.folder / "work", env=bench.environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    for line in child.stderr:
        if line.startswith("3/"):
            break
    child.send_signal(number)
    out, _ = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert "Interrupted: these are the results so far." in out
    wait_for(lambda: bench.left_behind() == [])


def test_a_script_that_does_not_train_is_one_sentence(bench: Bench) -> None:
    code, out, err = bench.run("print('hello')", "--set", WORKERS)
    assert code == 1 and out == "" and "No training was seen" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (
            PLAIN.replace("range(1000)", "range(1)"),
            "the script made 12 steps, too few to compare: 10 are warm-up, and 5 more are needed",
        ),
        ("import torch\ninput('name? ')", "the script as it is failed: EOFError"),
        ("import torch\nraise OSError('no disk')", "the script as it is failed: OSError: no disk"),
    ],
)
def test_what_cannot_be_tried_is_one_sentence(bench: Bench, script: str, sentence: str) -> None:
    code, out, err = bench.run(script)
    assert code == 1 and out == "" and sentence in err and "Traceback" not in err
    assert ("nobody answers a trial" in err) == ("EOFError" in sentence)
    bench.check_untouched()


def test_what_changes_the_training_must_be_allowed(bench: Bench) -> None:
    code, _, err = bench.run(PLAIN, "--set", "loader.batch_size=20")
    assert code == 2 and "may change what is learnt" in err and "--allow-numerics" in err
