"""What a prediction rests on: on a GPU, one without device times is marked as such on every face."""

from __future__ import annotations

import msgspec

from monitor.advice.engine import Engine
from monitor.cli.show import render as show
from monitor.model import facts
from monitor.model.finding import Finding
from monitor.model.history import RunRecord
from monitor.model.run import Device, Run
from monitor.model.snapshot import Snapshot
from monitor.report.report import make_report
from monitor.report.text import render
from tests.unit.advice.build import cuda_run, gpu_of, loader, loader_config, snapshot_of
from tests.unit.advice.shapes import LOADED, STARVED, starved

MEASURED = Device(busy_ratio=0.3, starved_ratio=0.7, measured_steps=300)
MARK = "unverified on a GPU"


def waiting(device: Device) -> Run:
    rank = {"loader": loader(**LOADED), "device_times": device}
    return cuda_run(STARVED, config=loader_config(0), rank=rank)


def judged(run: Run) -> Snapshot:
    return Engine().once(snapshot_of(run, gpus=(gpu_of(),)))


def predicted(run: Run) -> list[Finding]:
    return [one for one in judged(run).findings if one.speedup is not None]


def test_a_run_on_the_cpu_needs_no_device() -> None:
    found = [one for one in Engine().once(snapshot_of(starved(0))).findings if one.speedup]
    assert found and all(one.speedup and one.speedup.verified_on == "cpu" for one in found)


def test_waits_of_a_gpu_are_backed_by_device_time_only() -> None:
    with_events, without = predicted(waiting(MEASURED)), predicted(waiting(Device()))
    assert {one.speedup.verified_on for one in without if one.speedup} == {"none"}
    data = next(one.speedup for one in with_events if one.id.startswith("input."))
    assert data is not None and data.verified_on == "gpu"


def test_faster_computing_on_a_gpu_was_never_checked() -> None:
    config = {"precision": {"autocast": False}, "model": {"dtype": "float32"}}
    run = cuda_run(config=config, rank={"device_times": MEASURED})
    amp = next(one.speedup for one in predicted(run) if one.id == "compute.amp_off")
    assert amp is not None and amp.verified_on == "none"


def test_clocks_are_unverified() -> None:
    hot = gpu_of(throttle={"sw_thermal_slowdown": True}, sm_clock_hertz=0.7e9)
    found = next(one.speedup for one in Engine().once(snapshot_of(gpus=(hot,))).findings)
    assert found is not None and found.verified_on == "none"


def test_the_faces_say_so() -> None:
    run = msgspec.structs.replace(waiting(Device()), state="ended", ended=1_000_000.0)
    snapshot = facts.complete(judged(run))
    over = snapshot.runs[0]
    assert over.verdict is not None and f"({MARK})" in over.verdict.text()
    assert over.combined is not None and over.combined.verified_on == "none"
    assert f", {MARK}" in "\n".join(render(make_report(snapshot, over.id, 0), 100))
    record = RunRecord(over, facts.findings_of(over, snapshot.findings), 0.0)
    assert f", {MARK}" in "\n".join(show(record))
