"""One implementation of a run's statistics: exact where possible, and the same in the script and outside."""

from __future__ import annotations

import random
import statistics
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.model.clock import Moment
from monitor.model.run import Rank
from monitor.runs.reader import RunReader
from sdk import ring
from sdk.core.phases import BACKWARD, CHECKPOINT, DATA, FORWARD, VALIDATE
from sdk.loop.recorder import Recorder
from sdk.loop.summary import Summary, summarize
from sdk.statistics import Distribution
from tests.unit.runs.rings import Script

SHARES = (0.5, 0.95, 0.99)
PHASES = (DATA, FORWARD, BACKWARD, VALIDATE, CHECKPOINT, 12)


@given(st.lists(st.integers(1, 10**15), min_size=1, max_size=300), st.integers(0, 300))
def test_quantiles_are_within_one_per_cent_however_values_are_grouped(values: list[int], cut: int) -> None:
    whole, first, rest = Distribution(), Distribution(), Distribution()
    whole.add(values)
    first.add(values[:cut])
    rest.add(values[cut:])
    first.merge(rest)
    ordered = sorted(values)
    for share, found in zip(SHARES, whole.quantiles(SHARES), strict=True):
        exact = ordered[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]
        assert found == pytest.approx(exact, rel=0.0079)
    assert (whole.low, whole.high, whole.total) == (ordered[0], ordered[-1], sum(values))
    assert (whole.first, whole.buckets, whole.seconds()) == (first.first, first.buckets, first.seconds())


def test_median_of_a_real_shape() -> None:
    chance = random.Random(7)
    values = [int(chance.lognormvariate(15, 0.4)) for _ in range(5000)]
    found = Distribution()
    found.add(values)
    assert found.quantiles([0.5])[0] == pytest.approx(statistics.median(values), rel=0.01)


STEPS = st.lists(
    st.tuples(
        st.floats(8.0, 12.0),
        st.dictionaries(st.sampled_from(PHASES), st.floats(0.0, 1.0), max_size=6),
        st.sampled_from([0, 0, 0, ring.F_WARMUP, ring.F_SAMPLED, ring.F_EPOCH_START, ring.F_COMPILED]),
        st.integers(0, 900_000),
        st.integers(0, 64),
    ),
    min_size=4,
    max_size=90,
)
Step = tuple[float, dict[int, float], int, int, int]


def both(many: list[Step], chunk: int = 1) -> tuple[Summary, Rank]:
    """The same steps summed in the script, `chunk` at a time, and by a reader of the ended ring."""
    recorder = Recorder()
    for phase in PHASES:
        recorder.totals.use(phase)
    recorder.names.register("augment")
    with tempfile.TemporaryDirectory() as folder:
        script = Script(Path(folder), phases=["augment"])
        for number, (ms, phases, flags, overhead, samples) in enumerate(many, start=1):
            script.step(ms, phases, flags=flags, overhead=overhead, samples=samples)
            if number % chunk == 0:
                recorder.totals.add(script.writer.newest(chunk))
        recorder.totals.add(script.writer.newest(len(many) % chunk))
        script.end()
        reader = RunReader([Path(folder)])
        reader.poll(script.now())
        (run,) = reader.runs(script.now(), (), ())
        reader.close()
    return summarize(recorder, "demo", 1.0, {}), run.ranks[0]


@given(STEPS, st.integers(1, 64))
def test_the_summary_and_the_reader_agree_exactly(many: list[Step], chunk: int) -> None:
    """GIVEN steps without stalls WHEN the script and a reader sum them THEN no figure differs."""
    steady = [step for step in many if not step[2] & (ring.F_WARMUP | ring.F_SAMPLED)]
    if len(steady) < 3:
        many = [*many, *([(10.0, {FORWARD: 1.0}, 0, 100, 8)] * 3)]
    summary, rank = both(many, chunk)
    step = rank.step
    assert step == rank.whole and step.count == summary["steady_steps"] > 0
    assert (summary["p50"], summary["p95"], summary["p99"]) == (step.p50, step.p95, step.p99)
    assert summary["avg_iteration_time"] == step.mean
    assert (summary["min_iteration_time"], summary["max_iteration_time"]) == (step.min, step.max)
    assert summary["iterations_per_second"] == rank.iterations_per_second
    assert summary["samples_per_second"] == rank.samples_per_second
    assert summary["warmup_steps"] == rank.warmup_steps
    assert (summary["samples"] or 0) == rank.samples
    shares = {phase.name: phase.share for phase in rank.phases if phase.share}
    assert {name: share for name, share in summary["phases"].items() if share} == shares


def test_a_stall_is_in_the_summary_and_a_line_of_its_own_outside() -> None:
    usual: Step = (10.0, {FORWARD: 6.0}, 0, 0, 8)
    summary, rank = both([*[usual] * 40, (500.0, {DATA: 490.0}, 0, 0, 8), *[usual] * 20])
    (stall,) = rank.stalls
    assert (stall.kind, stall.count) == ("data", 1)
    assert summary["steady_steps"] == rank.step.count + stall.count
    assert summary["max_iteration_time"] == 0.5 and rank.step.max == 0.01
    assert summary["iterations_per_second"] == rank.iterations_per_second
    assert summary["phases"] == {phase.name: phase.share for phase in rank.phases}


def test_validation_is_a_phase_and_no_part_of_a_steps_own_time() -> None:
    usual: Step = (10.0, {FORWARD: 6.0}, 0, 0, 8)
    summary, _ = both([*[usual] * 20, (60.0, {FORWARD: 6.0, VALIDATE: 50.0}, 0, 0, 8)])
    assert summary["max_iteration_time"] == summary["avg_iteration_time"] == 0.01
    assert summary["phases"]["validate"] == pytest.approx(50 / 260)
    assert summary["iterations_per_second"] == pytest.approx(21 / 0.26)


def test_micro_batches_inside_and_outside(gpumon_dir: Path) -> None:
    """An accumulated step counts once, and its micro-batches are counted too: in the script and outside."""
    import torch
    from torch.utils.data import DataLoader

    from tests.unit.sdk.loops import Net, Recording, tensors

    recording = Recording(gpumon_dir)

    def loop() -> None:
        net = Net()
        for number, (x, y) in enumerate(DataLoader(tensors(400), batch_size=4)):
            net.loss(x, y).backward()
            if number % 4 == 3:
                net.optimizer.step()
                net.optimizer.zero_grad()

    torch.manual_seed(0)
    recording(loop)
    inside = recording.monitor.get_summary()
    assert inside["steps"] == 25 and inside["micro_batches"] == 4
    assert inside["micro_batches_per_second"] == pytest.approx(4 * inside["iterations_per_second"])
    assert "micro-batches/s" in str(inside)
    reader = RunReader([gpumon_dir])
    now = Moment.now()
    reader.poll(now)
    (run,) = reader.runs(now, (), ())
    reader.close()
    assert run.steps == 25 and run.micro_batches == 4
    assert run.micro_batches_per_second == pytest.approx(4 * (run.iterations_per_second or 0))
