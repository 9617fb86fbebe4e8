"""What `gpumon boost` finds of an earlier `gpumon try`."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.experiments.arm import Arm
from monitor.experiments.experiment import Result
from monitor.experiments.losses import Agreement
from monitor.experiments.memory import forget, recall, remember
from monitor.experiments.spread import Ratio


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("one = 1")
    return ["python", "train.py"]


def best() -> Result:
    arm = Arm({"optimizer.fused": "on"})
    return Result(arm, 4, Ratio(1.5, 1.4, 1.6), "", Agreement("rounding"), "rounding")


def test_the_best_settings_of_a_command(words: list[str]) -> None:
    remember(words, best(), 0.01)
    found = recall(words)
    assert found is not None and found.settings == {"optimizer.fused": "on"}
    assert (found.ratio, found.effect, found.step_seconds) == (1.5, "rounding", 0.01)


def test_another_script_or_another_command_is_not_verified(words: list[str]) -> None:
    remember(words, best(), 0.01)
    assert recall([*words, "--large"]) is None
    Path("train.py").write_text("one = 2")
    assert recall(words) is None


def test_what_is_verified_no_more_is_forgotten(words: list[str]) -> None:
    remember(words, best(), 0.01)
    forget(words)
    forget(words)
    assert recall(words) is None


def test_a_broken_file_is_nothing(words: list[str], tmp_path: Path) -> None:
    remember(words, best(), 0.01)
    [path] = (tmp_path / "state").rglob("verified/*.json")
    path.write_text("{")
    assert recall(words) is None
