"""The hot half in C and in Python: the same calls at the same times make the same records, word by word.

The C one is built here with a clock that the test sets, so every nanosecond can be compared.
"""

from __future__ import annotations

import gc
import threading
from array import array
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdk import ring
from sdk.core import plain
from sdk.phases import BETWEEN, DATA, FORWARD, OTHER, VALIDATE
from sdk.writer import Slots
from tests.unit.sdk.twins import Pair, build, make, records


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return build(tmp_path_factory.mktemp("native"))


@pytest.fixture
def pair(native: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    yield Pair(native, monkeypatch)


OPERATIONS = st.one_of(
    st.tuples(st.just("mark"), st.sampled_from([*range(ring.PHASE_SLOTS), OTHER])),
    st.tuples(
        st.just("lap"), st.sampled_from(["data", "forward", "own", "for" + "ward", "unheard", 7, (1, 2)])
    ),
    st.tuples(st.just("push"), st.sampled_from([VALIDATE, FORWARD, OTHER])),
    st.tuples(st.sampled_from(["pop", "waiting", "end_step", "complete", "count_done"])),
    st.tuples(st.just("step")),
    st.tuples(st.just("step"), st.floats(-1e6, 1e6)),
    st.tuples(st.just("count_batch"), st.sampled_from([[[1, 2], [3]], ([4] * 5, 6), 0, "ab"])),
    st.tuples(st.just("sized"), st.sampled_from([(0,), (1,), None])),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(loop=st.lists(st.tuples(OPERATIONS, st.sampled_from([0, 1, 700, 10**6, 2 * 10**7])), max_size=120))
def test_the_same_calls_make_the_same_records(
    native: ModuleType, monkeypatch: pytest.MonkeyPatch, loop: list[tuple[tuple[Any, ...], int]]
) -> None:
    pair = Pair(native, monkeypatch)
    for (what, *args), ns in loop:
        if what == "count_batch" and args[0] == 0:
            continue  # `look_at` of the stand-in wants a length
        pair.both(what, *args)
        pair.time.pass_by(ns)
    pair.same()


def test_a_whole_loop(pair: Pair) -> None:
    """Read as a user would: what is in a record, in both."""
    for step in range(200):
        pair.both("waiting")
        pair.time.pass_by(300)
        pair.both("mark", OTHER)
        pair.time.pass_by(10)
        pair.both("lap", "forward")
        pair.time.pass_by(5000)
        pair.both("step", 0.5, samples=step, tokens=7)
        pair.time.pass_by(40)
    pair.same()
    assert pair.c.steps == 199 and pair.c.done == 200
    last = pair.c.slots.newest(1)
    assert last[ring.W_END] - last[ring.W_BEGIN] == 5350
    assert (last[ring.W_PHASES + DATA], last[ring.W_PHASES + FORWARD], last[ring.W_PHASES + BETWEEN]) == (
        300,
        5000,
        40,
    )
    assert (last[ring.W_SAMPLES], last[ring.W_TOKENS], ring.bits_float(last[ring.W_LOSS])) == (198, 7, 0.5)
    assert ("full", 64) in pair.c.calls


def test_batches_mark_their_waits_and_their_end(pair: Pair) -> None:
    def source() -> Iterator[list[list[int]]]:
        for size in (3, 4, 5):
            pair.time.pass_by(100)
            yield [[0] * size]

    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        core.sized((0,))
        pair.time.set(2 * 10**9)
        for _ in module.Batches(core, source, True):
            pair.time.pass_by(1000)
            core.step()
            pair.time.pass_by(10)
    pair.same()
    assert [one[2 + ring.W_SAMPLES - 1] for one in records(pair.c)[1:]] == [3, 4]
    assert pair.c.scratch[ring.W_SAMPLES] == 5 and pair.c.phase == BETWEEN


def test_what_a_source_raises_comes_through(pair: Pair) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        batches = module.Batches(core, broken, False)
        assert next(batches) == 1
        with pytest.raises(OSError, match="disk"):
            next(batches)
        with pytest.raises(ZeroDivisionError):
            next(module.Batches(core, lambda: 1 // 0, False))
    pair.same()


def test_nothing_of_ours_reaches_the_loop(pair: Pair) -> None:
    for core in (pair.c, pair.python):
        core.raises = ValueError("inside")
    for _ in range(4):
        pair.both("lap", "forward")
        pair.time.pass_by(10**7)
        pair.both("step", "no number", samples=-1)
    pair.same()
    assert ("failed", True) in pair.c.calls, "what we raised ourselves"
    assert ("failed", False) in pair.c.calls, "what was said and is no number"


def test_what_is_meant_for_the_loop_does(pair: Pair) -> None:
    for core in (pair.c, pair.python):
        core.raises = SystemExit(0)
        with pytest.raises(SystemExit):
            for _ in range(9):
                core.lap("forward")
                core.step()


def test_other_threads_are_nobody(pair: Pair) -> None:
    def elsewhere() -> None:
        pair.both("lap", "forward")
        pair.both("step", 1.0)
        pair.both("push", FORWARD)
        assert pair.both("waiting") is False

    before = records(pair.c)
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(10)
    pair.same()
    assert records(pair.c) == before


def test_deep_nesting_comes_back(pair: Pair) -> None:
    pair.both("mark", FORWARD)
    for _ in range(plain.MOST_NESTED + 9):
        pair.both("push", VALIDATE)
    for _ in range(plain.MOST_NESTED + 9):
        pair.both("pop")
    pair.both("pop")
    pair.same()
    assert pair.c.phase == FORWARD and pair.c.depth == 0


def test_a_ring_that_is_too_short_is_refused(pair: Pair) -> None:
    with pytest.raises(ValueError, match="shorter"):
        pair.c.use(Slots(memoryview(array("Q", bytes(8 * 100))), 4))
    pair.c.mark(FORWARD)  # and without a ring every mark is harmless
    pair.c.step()
    assert pair.c.phase == OTHER


class Optimizer:
    pass


def test_the_usual_path_of_the_auto_way(pair: Pair) -> None:
    """asks → got → backward → optimizer, with everything else handed to `Auto`."""
    optimizer, iterator = Optimizer(), object()
    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        pair.time.set(3 * 10**9)

        class Auto(module.Loop):  # type: ignore[misc, name-defined]
            def begin_training(self) -> None:
                self.training = True

            def unusual_backward(self, before: int) -> None:
                self.core_calls.append(("unusual_backward", before))

            def optimizer_ended(self, one: Any) -> None:
                self.core_calls.append(("optimizer_ended", one is optimizer))
                self.primary, self.trusted, self.updated = id(one), id(iterator), True

        auto = Auto(core, lambda: True)
        auto.core_calls = core.calls
        core.sized((0,))
        core.watched = True
        asked = []
        for _ in range(5):
            asked.append(auto.asks(iterator))
            pair.time.pass_by(50)
            auto.got([[1, 2, 3]])
            pair.time.pass_by(500)
            auto.came_back(auto.goes_backward())
            auto.optimizer_begins(optimizer, (), {})
            pair.time.pass_by(20)
            auto.optimizer_ends(optimizer, (), {})
        assert asked == [False, True, True, True, True]
        assert not auto.asks(object()), "another iterator is not the usual case"
        assert auto.backwards == 5
    pair.same()


def test_a_core_is_freed(native: ModuleType) -> None:
    """Its views keep their memory, not the core; and nothing holds the ring."""
    core = make(native)
    scratch, slots = core.scratch, core.slots
    held: list[Any] = []
    held.append(native.Batches(core, held.__iter__, False))  # a cycle
    next(held[0])
    del core, held
    gc.collect()
    slots.words.release()
    assert scratch[ring.W_SAMPLES] == 0


def test_phases_nest_and_leave_when_their_body_fails(pair: Pair) -> None:
    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        pair.time.set(4 * 10**9)
        outer, inner = module.Phase(core, FORWARD), module.Phase(core, VALIDATE)
        with outer:
            pair.time.pass_by(5)
            with pytest.raises(KeyError), inner:
                pair.time.pass_by(7)
                raise KeyError
            pair.time.pass_by(11)
        pair.time.pass_by(13)
        core.step()
    pair.same()
    assert pair.c.scratch[ring.W_PHASES + FORWARD] == 16 and pair.c.scratch[ring.W_PHASES + VALIDATE] == 7


def test_a_face_marks_for_its_recorder(pair: Pair) -> None:
    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        pair.time.set(5 * 10**9)

        class Monitor(module.Face):  # type: ignore[misc, name-defined]
            pass

        face = Monitor(core)
        face.lap("for" + "ward")
        pair.time.pass_by(21)
        face.step()
        face.step(0.25, samples=3)
        face.lap("unheard")
        assert face._recorder is core
    pair.same()
    with pytest.raises(TypeError, match="no recorder"):
        pair.modules[0].Face(7)
    unready = pair.modules[0].Face.__new__(pair.modules[0].Face)
    unready.lap("forward")  # one that never got a recorder marks nothing
