"""What the passes of a model waste: batches that are too small, precision that nobody asked for."""

from __future__ import annotations

from monitor.model.finding import Finding
from tests.unit.advice.build import findings, hot, run_of


def test_a_small_batch_of_a_loop_without_a_loader_is_named_by_the_rows_its_modules_take() -> None:
    """GIVEN an agent that learns from four moments at a time WHEN it is judged THEN the batch is a cause, and
    the time in which it plays is not promised away."""
    phases = {"forward": 0.0006, "backward": 0.0008, "optimizer": 0.0006, "rollout": 0.0002}
    agent = {"shapes": {"rows": 4}, "model": {"layers": ["Linear", "Tanh"], "parameters": 140_000}}
    run = run_of(phases, config=agent, batch_size=None, rank={"samples": 0})
    found = next(one for one in findings(run) if one.id == "compute.small_batch")
    assert found.evidence["batch_size"] == 4 and found.speedup is not None
    factor = found.evidence["suggested_batch_size"] / 4
    played = factor * sum(phases.values()) / (factor * phases["rollout"])
    assert 2.0 < found.speedup.likely < played


def test_micro_batches_that_are_mostly_launching_are_taken_as_one() -> None:
    """GIVEN 16 passes an update, each little more than launching 40 layers THEN they are to be taken as one,
    which is the same update unless a layer looks at the whole batch or draws; passes that compute are not."""

    def found(seconds: float, *kinds: str, repeats: int = 0) -> Finding | None:
        layers = {"layers": ["Linear", *kinds], "layer_counts": {"Linear": 40}, "modules": 60}
        spots = [hot("backward", "loss.backward()", 1.0, calls=16, repeats=repeats)]
        phases = {"forward": 0.4 * seconds, "backward": 0.6 * seconds, "optimizer": 0.001}
        run = run_of(phases, micro_batches=16.0, config={"model": layers, "hotspots": spots})
        return next((one for one in findings(run) if one.id == "compute.small_batch"), None)

    small = found(0.045)
    assert small is not None and small.remedy is not None and small.speedup is not None
    assert small.remedy.effect == "rounding" and 2.0 < small.speedup.likely < 4.0
    for kind, effect in (("Dropout", "in_expectation"), ("BatchNorm2d", "changes_training")):
        other = found(0.045, kind)
        assert other is not None and other.remedy is not None and other.remedy.effect == effect
    assert found(0.4) is None, "most of a pass is arithmetic"
    assert found(0.045, repeats=1) is None, "passes through one graph"


def test_double_precision_in_part_of_the_model_is_worth_what_that_part_is() -> None:
    """GIVEN weights of float32 and a loss that a grid of float64 makes double THEN it is named with its line,
    and gains less than a model that is double as a whole."""

    def found(dtype: str, *spots: object) -> Finding | None:
        config = {"model": {"dtype": dtype}, "hotspots": list(spots)}
        run = run_of({"forward": 0.01, "backward": 0.012, "optimizer": 0.001}, config=config)
        return next((one for one in findings(run) if one.id == "compute.double_precision"), None)

    census = hot(
        "forward", "distance = distance / (0.1 + distance)", 0.6, function="Census.forward", double=True
    )
    part, whole = found("torch.float32", census), found("torch.float64")
    assert part is not None and whole is not None and "Census.forward" in part.title
    assert part.speedup is not None and whole.speedup is not None
    assert 1.2 < part.speedup.likely < whole.speedup.likely
    assert found("torch.float32", census | {"share": 0.1}) is None
    assert found("torch.float32", census | {"double": False}) is None


def test_samples_of_many_rows_are_no_small_batch() -> None:
    phases = {"forward": 0.0075, "backward": 0.012, "optimizer": 0.001}
    model = {"layers": ["Linear", "ReLU"], "parameters": 2_600_000}

    def found(rows: int) -> bool:
        run = run_of(phases, config={"shapes": {"rows": rows}, "model": model}, batch_size=16)
        return any(one.id == "compute.small_batch" for one in findings(run))

    assert [found(rows) for rows in (16, 256)] == [True, False]
