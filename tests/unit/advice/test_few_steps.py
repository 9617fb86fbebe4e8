"""Twenty to fifty steps: what can be said is said, with a wider range; nothing is called healthy early."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.advice.engine import Engine
from monitor.advice.prediction.gain import Outcomes, predict
from monitor.advice.prediction.step_model import StepModel, saved
from monitor.model.finding import Finding, Speedup
from monitor.model.host import Cpu, Host, Pressure
from monitor.model.run import Run, Times, Window
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import NOW, run_of, snapshot_of, trainer_process

LOOP = {"data": 0.0004, "forward": 0.003, "backward": 0.005, "optimizer": 0.0006}


def times(count: int, seconds: float) -> Times:
    return Times(count=count, mean=seconds, p50=seconds, p95=1.1 * seconds, max=1.5 * seconds)


def of_steps(count: int, seconds: dict[str, float], **changes: Any) -> Run:
    """A run that ended after this many steady steps."""
    short = times(count, sum(seconds.values()))
    rank = {"steps": count + 2, "step": short, "whole": short} | changes.pop("rank", {})
    return run_of(seconds, state="ended", ended=NOW, rank=rank, **changes)


def said(run: Run, **changes: Any) -> tuple[Finding, ...]:
    return Engine().once(snapshot_of(run, **changes)).findings


def test_the_cause_does_not_wait_and_the_range_is_wider() -> None:
    """GIVEN a loop that logs WHEN 20 or 400 steps were seen THEN the cause is the same, the doubt is not."""
    slow = {name: 5 * value for name, value in (LOOP | {"log": 0.006}).items()}
    few, many = said(of_steps(20, slow))[0], said(of_steps(400, slow))[0]
    assert few.id == many.id == "compute.logging_too_often"
    assert few.speedup is not None and many.speedup is not None
    assert few.speedup.low < many.speedup.low and few.speedup.likely == many.speedup.likely


def test_a_range_narrows_with_the_steps() -> None:
    def width(steps: int) -> float:
        step = StepModel(parts={"forward": 0.02, "log": 0.01}, steps=steps)
        gain: Speedup = predict(step, Outcomes(saved("log", 0.01, "log")), "")
        return gain.high / gain.low

    assert width(10) > width(20) > width(50) > width(1000)


def test_nothing_found_on_few_steps_says_on_how_few() -> None:
    slow = {name: 10 * value for name, value in LOOP.items()}
    few, many = said(of_steps(20, slow))[0], said(of_steps(400, slow))[0]
    assert few.id == many.id == "healthy.ok"
    assert few.title.startswith("After only 20 steps: ") and not many.title.startswith("After")


def test_compilation_without_end_needs_no_steady_step() -> None:
    """GIVEN 28 of 30 steps that compiled something WHEN no step is usual yet THEN the cause is named."""
    none = {"step": Times(), "whole": Times(), "phases": (), "steps": 30, "warmup_steps": 28}
    run = run_of({}, config={"compile": {"used": True, "recompiles": 28}}, rank=none, steps=30)
    (found,) = [one for one in said(run) if one.id == "compute.recompiles"]
    assert "28 recompilations in 30 steps" in found.title and found.speedup is None
    calm = {**none, "warmup_steps": 4}
    settled = run_of({}, config={"compile": {"used": True, "recompiles": 28}}, rank=calm, steps=30)
    assert not [one for one in said(settled) if one.id == "compute.recompiles"]


def test_a_slowdown_that_grows_shows_in_forty_long_steps() -> None:
    """GIVEN steps of half a second, two per window WHEN they grow THEN that is decay."""
    windows = tuple(
        Window(
            NOW - 40 + 2 * at, 1.0, 2 * at, 2, step_p50=0.3 + 0.03 * at,
            phases={"other": 0.2 + 0.03 * at, "forward": 0.8 - 0.03 * at},
        )
        for at in range(20)
    )  # fmt: skip
    run = of_steps(40, {"forward": 0.3, "other": 0.3}, timeline=windows)
    assert "trend.decay" in [one.id for one in said(run)]


@pytest.mark.parametrize(("phase", "decays"), [("rollout", False), ("other", True)])
def test_an_agent_that_plays_for_longer_is_no_decay(phase: str, decays: bool) -> None:
    windows = tuple(
        Window(
            NOW - 40 + 2 * at, 1.0, 4 * at, 4, step_p50=0.3 + 0.03 * at,
            phases={phase: 0.2 + 0.03 * at, "forward": 0.8 - 0.03 * at},
        )
        for at in range(20)
    )  # fmt: skip
    phases = {"rollout": 0.3, "forward": 0.3, "other": 0.3}
    run = of_steps(80, phases, timeline=windows)
    assert ("trend.decay" in [one.id for one in said(run)]) == decays


def test_set_up_that_is_most_of_a_short_run_is_said() -> None:
    run = of_steps(30, {"forward": 0.05}, started=NOW - 16, first_step_time=NOW - 3)
    found = next(one for one in said(run) if one.id == "job.long_setup")
    assert found.severity == "hint" and "81 %" in found.title


def busy(run: Run, used: float, pressure: float) -> Snapshot:
    host = Host("h", cpu=Cpu(2, used, pressure=Pressure(some_ratio=pressure)))
    return snapshot_of(run, host=host, processes=(trainer_process(cpu_ratio=0.6),))


def test_cores_that_others_took_are_said_when_the_run_is_over() -> None:
    engine = Engine()
    short = times(24, 0.05)
    live = run_of({"forward": 0.05}, rank={"steps": 26, "step": short, "whole": short})
    for _ in range(4):
        engine.evaluate(busy(live, 1.0, 0.6))
    over = msgspec.structs.replace(live, state="ended", ended=NOW)
    found = {one.id: one for one in engine.evaluate(busy(over, 0.1, 0.0)).findings}
    assert "used 70 % of all cores" in found["compute.contention"].title
    assert found["compute.contention"].severity == "warning" and "healthy.ok" not in found


def test_threads_that_others_leave_no_core_for_are_too_many() -> None:
    """GIVEN two threads on two cores WHEN others had most of both THEN fewer are advised, no gain claimed."""
    engine, live = Engine(), run_of({"forward": 0.05}, config={"threads": {"torch": 2}})
    for _ in range(4):
        engine.evaluate(busy(live, 1.0, 0.6))
    over = msgspec.structs.replace(live, state="ended", ended=NOW)
    found = {one.id: one for one in engine.evaluate(busy(over, 0.1, 0.0)).findings}["compute.contention"]
    assert "torch.set_num_threads(1)" in found.remedy.summary and found.remedy.effect == "rounding"
    assert found.speedup is None and found.remedy.knobs == {"threads.torch": "1"}


def test_times_taken_among_neighbours_are_no_cause_of_the_scripts_own() -> None:
    """GIVEN a batch that looks small WHEN others had most of the cores THEN they are the cause."""
    engine = Engine()
    phases = {"forward": 0.002, "backward": 0.003, "optimizer": 0.005}
    live = run_of(phases, batch_size=4, config={"model": {"layers": ["Linear"], "parameters": 900}})
    for _ in range(4):
        engine.evaluate(busy(live, 1.0, 0.9))
    over = msgspec.structs.replace(live, state="ended", ended=NOW)
    assert "compute.small_batch" in [one.id for one in said(over)]
    found = [one.id for one in engine.evaluate(busy(over, 0.1, 0.0)).findings]
    assert "compute.contention" in found and "compute.small_batch" not in found


def test_a_calm_machine_is_not_called_busy_afterwards() -> None:
    engine, live = Engine(), run_of({"forward": 0.05})
    for _ in range(4):
        engine.evaluate(busy(live, 0.5, 0.0))
    over = msgspec.structs.replace(live, state="ended", ended=NOW)
    assert [one.id for one in engine.evaluate(busy(over, 1.0, 0.9)).findings] == ["healthy.ok"]
