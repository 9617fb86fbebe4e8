"""Which generations of loader workers record: enough to see the loader, few enough to cost almost nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from sdk import ring
from sdk.loader._worker import WorkerRecorder
from sdk.loader._worker_rings import AGAIN_NS, FIRST, WorkerRings
from sdk.sampling.budget import SHARE
from sdk.sampling.hotspots import Hotspots
from sdk.writer import RingWriter

SECOND = 10**9


def loader(data: Any, batch_size: int = 8) -> Any:
    """A loader made anew, as many scripts do for every epoch."""
    return SimpleNamespace(dataset=data, batch_size=batch_size)


def test_short_epochs_record_the_first_and_then_one_every_few_seconds() -> None:
    rings, data, epoch = WorkerRings(dict), object(), SECOND // 10
    seen = [at for at in range(0, 60 * SECOND, epoch) if rings.wants_to_see(loader(data), at)]
    assert seen[:FIRST] == [epoch * number for number in range(FIRST)]
    assert all(
        later - before >= AGAIN_NS for before, later in zip(seen[FIRST - 1 :], seen[FIRST:], strict=False)
    )
    assert len(seen) - FIRST >= 60 * SECOND // AGAIN_NS - 2, "a run of a minute is seen to its end"


def test_long_epochs_all_record() -> None:
    rings, data = WorkerRings(dict), object()
    assert all(rings.wants_to_see(loader(data), at) for at in range(0, 60 * SECOND, AGAIN_NS))


def test_a_validation_loader_does_not_hide_the_training_loader() -> None:
    rings, training, validation = WorkerRings(dict), object(), object()
    for number in range(FIRST):
        assert rings.wants_to_see(loader(training), number)
        assert rings.wants_to_see(loader(validation), number)
    assert not rings.wants_to_see(loader(training), FIRST)
    assert rings.wants_to_see(loader(training, batch_size=16), FIRST), "another size is another loader"


def test_workers_that_cost_much_record_again_only_when_the_run_has_earned_it(tmp_path: Path) -> None:
    rings, data = WorkerRings(lambda: {"run": "r", "rank": 0}), object()
    cost = SECOND // 10
    seen = []
    for at in range(0, 60 * SECOND, SECOND):
        if rings.wants_to_see(loader(data), at):
            rings.next_generation(str(tmp_path))
            worker = RingWriter(
                str(tmp_path / f"r.0.w0.{at}{ring.SUFFIX}"), {"kind": ring.KIND_WORKER}, slots=64
            )
            worker.words[ring.H_OVERHEAD] = cost
            worker.close(ring.S_ENDED)
            seen.append(at)
    assert FIRST <= len(seen) < 60 * SECOND // AGAIN_NS - 2
    known = cost * (len(seen) - 2)  # without the newest two: one was not read yet when the last was decided
    assert known <= SHARE * seen[-1]


class FakeHotspots:
    """Samples as told, and how often they were evaluated."""

    running, spent_ns, samples, evaluated = True, 0, 0, 0

    def step(self) -> None:
        """A batch has ended."""

    def evaluate(self) -> FakeHotspots:
        self.evaluated += 1
        return self

    def result(self) -> dict[str, Any]:
        return {}


def test_a_worker_that_has_seen_nothing_new_publishes_nothing(tmp_path: Path) -> None:
    hotspots = FakeHotspots()
    recorder = WorkerRecorder(0, {"run": "r", "rank": 0}, str(tmp_path), sampling=False)
    recorder._hotspots = cast("Hotspots", hotspots)
    evaluated = []
    for batch in range(1, 11):
        hotspots.samples = 2 if batch >= 2 else 0
        hotspots.running = batch < 10
        recorder.batch(0, 1, 2, 8)
        evaluated.append(hotspots.evaluated)
    assert evaluated == [0, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert recorder._hotspots is None, "sampling is over"
