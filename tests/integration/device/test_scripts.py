"""Unchanged training scripts on the stand-in: its account against what each script was made to do.

Expected values follow from the kernel times, sleeps and bytes set here and in the script. Device time does
not depend on the speed of this machine; host time does, so it only has bounds that a slow machine meets.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import device
from tests.device import Result, Speeds

SCRIPTS = Path(device.__file__).parent / "scripts"


def run(name: str, *args: str, speeds: Speeds | None = None) -> Result:
    result = device.run(SCRIPTS / f"{name}.py", args, speeds)
    assert result.returncode == 0, result.stderr
    return result


def matrices(microseconds: float, **others: float) -> Speeds:
    """A device on which every matrix product takes this long."""
    return Speeds(kernels_us={"addmm": microseconds, "mm": microseconds, **others})


def steady(result: Result) -> dict[str, Any]:
    account: dict[str, Any] = result.truth["devices"][0]["steady"]
    idle = sum(account["idle"].values())
    assert account["busy"] + idle == pytest.approx(account["seconds"], rel=1e-6)
    assert account["seconds"] < result.wall
    return account


def main_cause(account: dict[str, Any]) -> str:
    return max(account["idle"], key=account["idle"].__getitem__)


def losses(result: Result) -> tuple[float, float]:
    first, last = (float(word) for word in result.stdout.split()[1:3])
    return first, last


def test_device_bound_with_a_read_each_step() -> None:
    result = run("gpu_bound_item", speeds=matrices(6000))
    account = steady(result)
    steps = 30 - 1 - 5
    # two layers: 2 products forward, 3 backward (the input needs no gradient)
    assert account["busy"] == pytest.approx(steps * 5 * 0.006, rel=0.1)
    assert account["copies"] >= steps, "a read each step"
    assert account["idle"]["data"] == account["idle"]["copy"] == 0
    first, last = losses(result)
    assert last < 0.8 * first


def test_loading_hidden_behind_the_device() -> None:
    account = steady(run("hidden_loading", speeds=matrices(8000)))
    assert account["busy"] == pytest.approx((30 - 1 - 5) * 5 * 0.008, rel=0.1)
    assert account["busy"] > 0.85 * account["seconds"]
    assert account["idle"]["data"] < 0.1 * account["seconds"]


def test_waiting_for_data() -> None:
    account = steady(run("data_bound", speeds=matrices(500)))
    steps = 40 - 1 - 5
    assert account["idle"]["data"] > 0.95 * steps * 0.020
    assert account["busy"] == pytest.approx(steps * 5 * 0.0005, rel=0.3)
    assert main_cause(account) == "data"


def test_many_tiny_operators() -> None:
    account = steady(run("launch_bound"))
    assert account["kernels"] > 54 * 150
    assert account["busy"] == pytest.approx(account["kernels"] * 2e-6, rel=0.2)
    assert account["idle"]["launch"] > 0.7 * account["seconds"]


def test_blocking_copies() -> None:
    account = steady(run("pageable_copies", speeds=Speeds(pageable_gb_s=1.0)))
    steps = 40 - 1 - 5
    assert account["idle"]["copy"] > 0.9 * steps * 8e6 / 1e9
    assert main_cause(account) == "copy"


def test_many_reads() -> None:
    account = steady(run("many_items", speeds=matrices(1500)))
    steps = 40 - 1 - 5
    assert account["busy"] == pytest.approx(steps * 22 * 0.0015, rel=0.15)
    assert account["copies"] >= steps * 20
    assert account["idle"]["sync"] > 0


def test_two_optimizers() -> None:
    account = steady(run("gan", speeds=matrices(3000)))
    assert account["busy"] > 0.85 * account["seconds"]


def test_micro_batches_that_wait_for_data() -> None:
    account = steady(run("accumulation", speeds=matrices(300)))
    batches = (30 - 1 - 5) * 4
    assert account["idle"]["data"] > 0.8 * batches * (0.010 - 5 * 0.0003)
    assert main_cause(account) == "data"


def test_average_and_evaluation() -> None:
    result = run("evaluation_ema", speeds=matrices(6000))
    account = steady(result)
    # 5 products a step, and 5 batches of 2 layers every tenth step
    assert account["busy"] == pytest.approx((24 * 5 + 2 * 10) * 0.006, rel=0.15)
    assert result.stdout.count("accuracy") == 3


def test_a_loop_without_a_loader() -> None:
    result = run("no_loader")
    account = result.truth["devices"][0]["whole"]
    assert result.truth["devices"][0]["steady"] is None, "no optimizer, no marks"
    assert account["idle"]["launch"] > 0.7 * account["seconds"]
    assert account["idle"]["data"] == 0


def test_a_recurrent_model_learns() -> None:
    first, last = losses(run("lstm"))
    assert last < 0.5 * first


def test_mixed_precision_takes_the_faster_rate() -> None:
    speeds = Speeds(fp32_tflops=0.05, tf32_tflops=0.05, half_tflops=0.2)
    plain, mixed = run("amp", "fp32", speeds=speeds), run("amp", "fp16", speeds=speeds)
    ratio = steady(plain)["busy"] / steady(mixed)["busy"]
    assert 3 < ratio < 4.5, "the rates differ by 4"
    assert "scale 65536" in mixed.stdout


def test_workers_and_pinned_memory() -> None:
    result = run("workers_pinned", speeds=matrices(3000, convolution=3000, convolution_backward=6000))
    assert "pinned 30" in result.stdout
    assert len(result.truths) == 1, "the workers have no device"
    copies = {event["name"] for event in events(result) if event["cat"] == "gpu_memcpy"}
    assert "Memcpy HtoD (Pinned -> Device)" in copies


def events(result: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(result.trace.read_text())["traceEvents"]
    return found
