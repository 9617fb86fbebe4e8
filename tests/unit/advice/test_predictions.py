"""What single rules promise: derived from the run's own figures, not from a constant per rule."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.advice.context.machine import Point
from monitor.advice.context.run import RunContext
from monitor.advice.judging import judge_run
from monitor.model.finding import Speedup
from monitor.model.policy import DEFAULT_POLICY
from monitor.model.run import Run
from tests.unit.advice.build import (
    findings,
    hot,
    loader,
    loader_config,
    piece,
    rank_of,
    run_of,
    snapshot_of,
)


def promise(id: str, run: Run) -> Speedup:
    """The prediction of this rule, whether or not others suppress it."""
    context = RunContext(snapshot_of(run), run, DEFAULT_POLICY)
    found = next(one.finding.speedup for one in judge_run(context) if one.finding.id == id)
    assert found is not None and found.low <= found.likely <= found.high
    return found


def with_trainer_at(cores: float, run: Run) -> RunContext:
    """The run as seen after some ticks in which its own process kept so many cores busy."""
    points = tuple(Point(steps=at, rss_bytes=None, device_bytes=None, trainer_cpu=cores) for at in range(5))
    return RunContext(snapshot_of(run), run, DEFAULT_POLICY, points)


def run_with(phases: dict[str, float], *hotspots: dict[str, Any], **config: Any) -> Run:
    return run_of(phases, config={"hotspots": list(hotspots), **config})


def test_a_loop_that_backward_never_saw_leaves_backward_alone() -> None:
    line = hot("forward", "a = nearest(points, i)", calls=400.0, function="neighbours")
    unrecorded = run_with({"forward": 0.02, "backward": 0.001, "optimizer": 0.001}, line)
    recorded = run_with({"forward": 0.02, "backward": 0.02, "optimizer": 0.001}, line)
    assert promise("compute.python_loop", unrecorded).likely < 0.022 / 0.002
    assert promise("compute.python_loop", recorded).likely > 0.041 / 0.023


def test_a_loop_over_operations_in_a_module_is_none_over_modules() -> None:
    """GIVEN a loop in the `forward` of a module of the user's WHEN its rounds call no module THEN what
    remains of it are a few operations, not a layer that takes a sequence."""
    line = hot("forward", "state = 0.9 * state + 0.1 * x[:, t]", calls=100.0, kind="module", share=0.87)
    phases = {"data": 0.0001, "forward": 0.0009, "backward": 0.0013, "optimizer": 0.00003}
    modules = promise("compute.python_loop", run_with(phases, line))
    operations = promise("compute.python_loop", run_with(phases, line | {"over_operations": True}))
    assert modules.high < 5.3 < operations.high and modules.likely < operations.likely < 5.0


def test_a_loop_whose_results_carry_no_gradient_has_no_part_of_backward() -> None:
    """GIVEN a loop in the loss that chooses which samples to compare THEN backward does not repeat it."""
    phases = {"forward": 0.02, "backward": 0.01, "optimizer": 0.001}
    for fact in ("detached", "no_grad"):
        line = hot("forward", "losses = near - far[i]", 0.6, calls=400.0, function="choose", **{fact: True})
        assert promise("compute.python_loop", run_with(phases, line)).high <= 0.031 / 0.011


def test_a_loop_beside_the_forward_pass_has_little_of_backward() -> None:
    """GIVEN an update by hand, parameter by parameter, after backward WHEN it takes most of what is beside
    the forward pass THEN backward is the forward pass's, and the loop is not worth a word."""
    update = hot("other", "for p in model.parameters():", 0.6, calls=23.0, function="train")
    phases = {"forward": 0.0056, "backward": 0.0059, "other": 0.0003}
    assert "compute.python_loop" not in [one.id for one in findings(run_with(phases, update))]
    assert promise("compute.python_loop", run_with(phases | {"other": 0.006}, update)).likely < 2.2


def test_a_collection_seen_at_the_head_of_the_loop_is_a_collection() -> None:
    lines = (
        hot("between", "tidy()", 0.5, job="gc"),
        hot("between", "for x, y in loader:", 0.5, line=3, head=True),
    )
    run = run_with({"data": 0.0005, "forward": 0.001, "backward": 0.001, "between": 0.05}, *lines)
    assert promise("job.gc_pauses", run).likely > 15


def test_collections_are_counted_in_steps_that_do_not_warm_up() -> None:
    """GIVEN a counter of the steps after the warm-up WHEN much of a short run warms up THEN a step's share of
    it is not what the whole run's is."""
    phases = {"data": 0.0001, "forward": 0.0004, "backward": 0.0004, "between": 0.0991}
    rank = {"steps": 100, "warmup_steps": 20, "scalars": {"gc.seconds": 80 * 0.099}}
    assert promise("job.gc_pauses", run_of(phases, rank=rank)).likely > 80
    spared = rank | {"scalars": {"gc.seconds": 80 * 0.099 / 2}}
    assert promise("job.gc_pauses", run_of(phases, rank=spared)).likely < 2.1


def test_a_phase_that_is_nearly_all_collection_goes_with_it() -> None:
    """GIVEN a collector that takes nearly all of a phase THEN the rest of the phase, in which what it found
    is freed, may go as well; beside other work it does not."""
    phases = {"data": 0.0005, "forward": 0.0007, "backward": 0.0006, "between": 0.1463}
    rank = {"steps": 100, "warmup_steps": 20, "scalars": {"gc.seconds": 80 * 0.143}}
    found = promise("job.gc_pauses", run_of(phases, rank=rank))
    assert found.low < 40 and found.likely > 70 and found.high > 150
    mixed = phases | {"between": 0.2}
    assert promise("job.gc_pauses", run_of(mixed, rank=rank)).likely < 4


def test_a_checkpoint_is_also_what_is_done_to_its_file() -> None:
    phases = {"forward": 0.004, "backward": 0.006, "checkpoint": 0.004, "other": 0.004}
    alone = run_with(phases)
    synced = run_of(phases, config={"work": [piece("other", "keep(step)", job="save")]})
    ids = "compute.checkpoint_stalls"
    assert promise(ids, synced).likely > 1.2 * promise(ids, alone).likely


def test_of_many_recompilations_one_is_left() -> None:
    def compiled(count: int) -> float:
        config = {"compile": {"used": True, "recompiles": count}}
        rank = rank_of({"forward": 0.002}, steps=100)
        spent = tuple(msgspec.structs.replace(phase, total_seconds=4.0) for phase in rank.phases)
        run = run_of({"forward": 0.002}, config=config, rank={"steps": 100, "phases": spent})
        return promise("compute.recompiles", run).likely

    assert compiled(40) > 10 > compiled(8) > 4


def test_a_batch_of_two_pays_for_every_operation_anew() -> None:
    times = loader(fetch_seconds=16e-6, collate_seconds=33e-6)
    dense = {"layers": ["Linear", "ReLU"], "modules": 6, "parameters": 20_000, "tensors": 6}
    run = run_of(
        {"data": 80e-6, "forward": 130e-6, "backward": 160e-6, "optimizer": 300e-6},
        batch_size=2,
        config=loader_config(0, batch_size=2) | {"model": dense, "threads": {"torch": 1}},
        rank={"loader": times, "steps": 5000},
    )
    assert 15 < promise("compute.small_batch", run).likely < 40


def test_one_pass_shows_what_the_other_should_take() -> None:
    odd = run_with({"forward": 0.05, "backward": 0.004}, threads={"torch": 16})
    even = run_with({"forward": 0.02, "backward": 0.034}, threads={"torch": 16})
    id = "compute.threads_oversubscribed"
    assert promise(id, odd).likely > 5 > 2.5 > promise(id, even).likely > 1.3


def test_many_small_layers_cost_a_batch_more_than_few() -> None:
    """GIVEN the same step WHEN the model has more convolutions THEN less of it grows with the batch."""

    def images(convolutions: int) -> float:
        model = {"layers": ["Conv2d"], "layer_counts": {"Conv2d": convolutions}, "modules": convolutions + 1}
        run = run_of(
            {"data": 80e-6, "forward": 600e-6, "backward": 900e-6, "optimizer": 1500e-6},
            batch_size=4,
            config=loader_config(0, batch_size=4) | {"model": model, "threads": {"torch": 1}},
            rank={"loader": loader(fetch_seconds=16e-6, collate_seconds=33e-6), "steps": 5000},
        )
        return promise("compute.small_batch", run).likely

    assert images(3) > 1.2 * images(1)


def test_a_worker_is_no_help_where_the_model_keeps_all_cores_busy() -> None:
    phases = {"data": 0.005, "forward": 0.006, "backward": 0.012, "optimizer": 0.0006}
    run = run_of(phases, config=loader_config(0))

    def found(cores: float) -> list[str]:
        return [one.finding.id for one in judge_run(with_trainer_at(cores, run))]

    assert "input.no_workers" in found(1.0), "the second core is free"
    assert "input.no_workers" not in found(2.0), "a worker takes it from the model's threads"


def test_cores_of_the_passes_are_told_from_those_of_loading() -> None:
    run = run_of({"data": 0.01, "forward": 0.004, "backward": 0.006}, config=loader_config(0))
    assert with_trainer_at(1.5, run).main_threads == pytest.approx(2.0), (
        "one core while loading, so two in the passes"
    )
    assert with_trainer_at(0.7, run).main_threads == 1.0
    single = run_of({"data": 0.01, "forward": 0.01}, config=loader_config(0) | {"threads": {"torch": 1}})
    assert with_trainer_at(1.5, single).main_threads == 1.0


def test_a_loop_counts_with_its_part_of_backward() -> None:
    line = hot("forward", "out.append(a[i] * b[j])", 0.5, calls=150.0, function="pairs")
    run = run_with({"forward": 0.004, "backward": 0.006, "optimizer": 0.006}, line)
    assert 1.2 < promise("compute.python_loop", run).likely < 1.5, "2 of 4 and 3 of 6 ms, of 16"


def test_copies_an_optimizer_makes_in_its_step_are_copies() -> None:
    line = hot("optimizer", "self.good = copy.deepcopy(state)", 0.8, job="copy", function="Guarded.step")
    run = run_with({"forward": 0.004, "backward": 0.006, "optimizer": 0.006}, line)
    assert promise("compute.state_copies", run).likely > 1.3
