"""The trace files: the stand-in's own, and torch.profiler's with the stand-in's work in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests import device
from tests.device import Result

TRAIN = """
import sys, torch
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    optimizer.zero_grad(); loss = net(torch.randn(4, 8).cuda()).pow(2).mean()
    loss.backward(); optimizer.step()
    return loss.item()
"""


def run(code: str) -> Result:
    result = device.run_code(TRAIN + code)
    assert result.returncode == 0, result.stderr
    return result


def by_category(path: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for event in json.loads(path.read_text())["traceEvents"]:
        found.setdefault(event.get("cat", ""), []).append(event)
    return found


def union_us(events: Iterable[dict[str, Any]]) -> float:
    total, reached = 0.0, 0.0
    for event in sorted(events, key=lambda event: event["ts"]):
        end = event["ts"] + event["dur"]
        total += max(0.0, end - max(event["ts"], reached))
        reached = max(reached, end)
    return total


def check_launches(events: dict[str, list[dict[str, Any]]]) -> None:
    calls = [event for event in events["cuda_runtime"] if "correlation" in event.get("args", {})]
    launches = {call["args"]["correlation"]: call for call in calls}
    for work in [*events["kernel"], *events["gpu_memcpy"]]:
        launch = launches[work["args"]["correlation"]]
        assert launch["ts"] <= work["ts"] + 1
        assert launch["name"] == ("cudaLaunchKernel" if work["cat"] == "kernel" else "cudaMemcpyAsync")
        assert work["args"]["stream"] == work["tid"]


def test_the_own_trace_agrees_with_the_account() -> None:
    result = run("for _ in range(10): step()")
    events = by_category(result.trace)
    check_launches(events)
    whole = result.truth["devices"][0]["whole"]
    assert len(events["kernel"]) == whole["kernels"]
    assert union_us(events["kernel"]) == pytest.approx(1e6 * whole["busy"], rel=0.01)
    assert [e["name"] for e in events["user_annotation"]] == [f"ProfilerStep#{n}" for n in range(1, 10)]


def test_torch_profiler_shows_the_devices_work(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    run(f"""
from torch.profiler import ProfilerActivity, profile
step()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as window:
    for _ in range(3): step()
assert any(e.device_type == torch.autograd.DeviceType.CUDA for e in window.events())
assert window.key_averages().total_average().self_device_time_total > 0
window.export_chrome_trace({str(path)!r})
""")
    events = by_category(path)
    check_launches(events)
    assert sum("addmm" in e["name"] for e in events["kernel"]) == 6
    operators = {event["args"]["External id"]: event["name"] for event in events["cpu_op"]}
    assert {operators[e["args"]["External id"]] for e in events["kernel"] if "addmm" in e["name"]} == {
        "aten::addmm"
    }
