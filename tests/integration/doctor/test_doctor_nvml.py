"""The NVML checks against the stand-in library: answers, a lost GPU, a hung driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitor.doctor import gpu
from monitor.doctor.check import Context
from monitor.doctor.probes import ask_nvml
from monitor.model.settings import Settings
from tests.conftest import require_program
from tests.nvml.standin import StandIn


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    require_program("gcc")
    with StandIn(gpus=2) as nvml:
        for name, value in nvml.environment().items():
            monkeypatch.setenv(name, value)
        yield nvml


def test_every_gpu_answers(standin: StandIn) -> None:
    context = Context(Settings())
    assert gpu.driver(context).status == "PASS"
    result = gpu.nvml(context)
    assert result.status == "PASS"
    assert len(result.facts["gpus"]) == 2


def test_a_lost_gpu_is_named_and_the_other_still_counts(standin: StandIn) -> None:
    standin.gpu(1).lose()
    result = gpu.nvml(Context(Settings()))
    assert result.status == "FAIL"
    assert "GPU 1" in result.detail
    assert "GPU 0" not in result.detail


def test_a_hung_driver_does_not_hang_the_doctor(standin: StandIn) -> None:
    standin.hang()
    answer = ask_nvml(seconds=1.5)
    standin.unhang()
    assert answer.hung, "it gave up while the driver still hung"
    context = Context(Settings())
    context.nvml = answer
    assert gpu.nvml(context).status == "FAIL"
