"""The GPU self-test, without a GPU: what counts as held, and what it says if there is none."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from monitor.cli.main import main
from monitor.doctor.gpu_selftest import LOOPS, judge
from monitor.model.errors import EXIT_USAGE
from monitor.model.run import Device
from monitor.report.report import Report
from tests import scene


def report(bound: str, idle: float | None, *ids: str) -> Report:
    device = msgspec.convert({"bound": bound}, Device)
    rank = replace(scene.rank(), device_times=device)
    run = replace(scene.run(), ranks=(rank,), starved_ratio=idle)
    return Report(run, tuple(replace(scene.finding(), id=id) for id in ids), "")


@pytest.mark.parametrize(
    ("loop", "said", "class_held", "idle_held"),
    [
        ("launch", report("host", 0.78), True, True),
        ("launch", report("device", 0.78), False, True),
        ("launch", report("host", 0.70), True, False),
        ("launch", report("host", None), True, False),
        ("copy", report("host", 0.8), False, True),
        ("copy", report("host", 0.8, "transfer.blocking_copies"), True, True),
        ("healthy", report("device", 0.8, "compute.amp_off"), True, True),
        ("healthy", report("device", 0.8, "input.no_workers"), False, True),
    ],
)
def test_what_counts_as_held(loop: str, said: Report, class_held: bool, idle_held: bool) -> None:
    ids = tuple(finding.id for finding in said.findings)
    outcome = judge(loop, 0.010, 0.002, said.run, ids)  # idle for 80 %
    assert (outcome.class_held, outcome.idle_held) == (class_held, idle_held)
    assert outcome.held == (class_held and idle_held)


def test_every_loop_has_a_script() -> None:
    from sdk import gpu_selftest

    assert list(gpu_selftest.LOOPS) == list(LOOPS)


@pytest.mark.slow
def test_without_a_gpu_it_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert main(["doctor", "--gpu-selftest"]) == EXIT_USAGE
    assert "the self-test needs a GPU: torch found no GPU" in capsys.readouterr().err


def test_without_torch_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--gpu-selftest", "--python", "/nonexistent/python"]) == EXIT_USAGE
    assert "could not be prepared" in capsys.readouterr().err
