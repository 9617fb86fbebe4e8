"""`gpumon doctor --gpu-selftest` on the stand-in, whose own account checks the self-test's truth."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from monitor.cli import gpu_selftest
from monitor.cli.main import main
from monitor.doctor.gpu_selftest import LOOPS, POINTS, Answer, Outcome
from monitor.model.errors import EXIT_FAILED, EXIT_OK
from tests import device
from tests.device import Speeds

ATTEMPTS = 4
"""A loaded machine slows single steps down, so loops that have not held are run again."""


@pytest.fixture
def on_the_device(gpumon_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every child of this process has the stand-in; its accounts go to the folder."""
    folder = tmp_path / "accounts"
    folder.mkdir()
    for name, value in device.environment(Speeds(), folder).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return folder


def take_accounts(folder: Path) -> list[float]:
    """The idle share of each process, in the order in which they ended; the first one chose the sizes."""
    shares = []
    for path in sorted(folder.glob("truth-*.json"), key=lambda path: path.stat().st_mtime_ns):
        steady = json.loads(path.read_text())["devices"][0]["steady"]
        shares.append(sum(steady["idle"].values()) / steady["seconds"])
        path.unlink()
    return shares[1:]


def not_held(outcomes: Sequence[Outcome], folder: Path) -> list[str]:
    """Also against the stand-in's own account, which contains all steps, including sampled ones."""
    pairs = zip(outcomes, take_accounts(folder), strict=True)
    return [one.loop for one, own in pairs if not one.held or abs(one.idle_true - own) > 2 * POINTS]


def test_every_loop_holds_and_the_file_is_written(
    on_the_device: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "self.json"
    code = main(["doctor", "--gpu-selftest", "-o", str(target)])
    said = capsys.readouterr()
    answer = msgspec.json.decode(target.read_bytes(), type=Answer)
    assert [one.loop for one in answer.loops] == list(LOOPS)
    assert code == (EXIT_OK if all(one.held for one in answer.loops) else EXIT_FAILED)
    assert answer.card["device"] == "stand-in device" and "5 of 5: blocking copies" in said.err
    private = (str(tmp_path), os.uname().nodename, str(Path(sys.executable).parent))
    assert not any(word in target.read_text() for word in private)
    left, seen = not_held(answer.loops, on_the_device), [*answer.loops]
    for _ in range(ATTEMPTS - 1):
        if left:
            seen += gpu_selftest.measure(sys.executable, left).loops
            left = not_held(seen[-len(left) :], on_the_device)
    assert left == [], "\n".join(map(str, seen))
