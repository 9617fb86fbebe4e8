"""The hot path in C and in Python: the same calls at the same times make the same records, word by word.

The C core is built here with a clock that the test sets, so every nanosecond can be compared.
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
from sdk.core.phases import BETWEEN, DATA, FORWARD, OTHER, VALIDATE, PhaseNames
from sdk.writer import FOLD, Slots
from tests.rings import bits_float
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
    st.tuples(st.sampled_from(["pop", "request_batch", "count_done"])),
    st.tuples(st.just("complete_and_begin"), st.sampled_from([DATA, FORWARD, OTHER])),
    st.tuples(st.just("collected"), st.sampled_from(["start", "stop"]), st.just({})),
    st.tuples(st.just("step")),
    st.tuples(st.just("step"), st.floats(-1e6, 1e6)),
    st.tuples(st.just("count_batch"), st.sampled_from([[[1, 2], [3]], ([4] * 5, 6), 0, "ab"])),
    st.tuples(st.just("set_batch_path"), st.sampled_from([(0,), (1,), None])),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(loop=st.lists(st.tuples(OPERATIONS, st.sampled_from([0, 1, 700, 10**6, 2 * 10**7])), max_size=120))
def test_the_same_calls_make_the_same_records(
    native: ModuleType, monkeypatch: pytest.MonkeyPatch, loop: list[tuple[tuple[Any, ...], int]]
) -> None:
    pair = Pair(native, monkeypatch)
    for (what, *args), ns in loop:
        if what == "count_batch" and args[0] == 0:
            continue  # `measure_batch` of the stand-in wants a length
        pair.both(what, *args)
        pair.time.pass_by(ns)
    pair.same()


def test_a_whole_loop(pair: Pair) -> None:
    """Read as a user would: the content of a record, in both."""
    steps = FOLD + 8  # more than the slots of the ring in memory
    for step in range(steps):
        pair.both("request_batch")
        pair.time.pass_by(300)
        pair.both("mark", OTHER)
        pair.time.pass_by(10)
        pair.both("lap", "forward")
        pair.time.pass_by(5000)
        pair.both("step", 0.5, samples=step, tokens=7)
        pair.time.pass_by(40)
    pair.same()
    assert pair.c.steps == steps - 1 and pair.c.done == steps
    last = pair.c.slots.newest(1)
    assert last[ring.W_END] - last[ring.W_BEGIN] == 5350
    assert (last[ring.W_PHASES + DATA], last[ring.W_PHASES + FORWARD], last[ring.W_PHASES + BETWEEN]) == (
        300,
        5000,
        40,
    )
    assert (last[ring.W_SAMPLES], last[ring.W_TOKENS], bits_float(last[ring.W_LOSS])) == (steps - 2, 7, 0.5)
    assert ("ring_full", FOLD) in pair.c.calls


def test_batches_mark_their_waits_and_their_end(pair: Pair) -> None:
    def source() -> Iterator[list[list[int]]]:
        for size in (3, 4, 5):
            pair.time.pass_by(100)
            yield [[0] * size]

    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        core.set_batch_path((0,))
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


def test_other_threads_mark_nothing(pair: Pair) -> None:
    def elsewhere() -> None:
        pair.both("lap", "forward")
        pair.both("step", 1.0)
        pair.both("push", FORWARD)
        assert pair.both("request_batch") is False

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
    with pytest.raises(ValueError, match="too short"):
        pair.c.use(Slots(memoryview(array("Q", bytes(8 * 100))), 4))
    pair.c.mark(FORWARD)  # and without a ring every mark is harmless
    pair.c.step()
    assert pair.c.phase == OTHER


class Thing:
    """An optimizer, an iterator or a module."""

    training = True


MODEL, FROZEN, ADAM, OTHER_ADAM, ITERATOR, OTHER_ITERATOR = (Thing() for _ in range(6))
FROZEN.training = False
GRADIENTS = {"on": True}


def recognizer(module: Any, core: Any) -> Any:
    """A `Loop` that records what it is asked, as the recognizer behind it would hear it."""

    class Auto(module.Loop):  # type: ignore[misc, name-defined]
        def begin_training(self) -> None:
            self.training = True

        def unusual_backward(self, before: int) -> None:
            core.calls.append(("unusual_backward", before))

        def after_backward(self) -> None:
            core.calls.append(("after_backward", 0))

        def unsure_start(self) -> None:
            core.calls.append(("unsure_start", 0))

        def begin_at_open_phase(self) -> None:
            core.calls.append(("begin_at_open_phase", 0))

        def tail_ended(self) -> None:
            core.calls.append(("tail_ended", 0))
            self.tail = False

        def unusual_call(self, one: Any) -> bool:
            core.calls.append(("unusual_call", one is MODEL))
            if core.raises is not None:
                raise core.raises
            return one is MODEL

        def optimizer_ended(self, one: Any) -> None:
            core.calls.append(("optimizer_ended", one is ADAM))
            self.stepped = self.had_update = self.settled = True
            self.closer = self.last = id(one)
            self.training_iterator = id(ITERATOR)

    return Auto(core, lambda: GRADIENTS["on"])


EVENTS = st.one_of(
    st.tuples(st.just("usual_request"), st.sampled_from([ITERATOR, ITERATOR, OTHER_ITERATOR])),
    st.tuples(st.just("usual_batch"), st.just([[1, 2, 3]])),
    st.tuples(st.just("call_begins"), st.sampled_from([MODEL, MODEL, FROZEN, 7])),
    st.tuples(st.sampled_from(["pass", "forward_begins", "count_micro_batches"])),
    st.tuples(
        st.sampled_from(["optimizer_begins", "optimizer_ends"]), st.sampled_from([ADAM, ADAM, OTHER_ADAM])
    ),
    st.tuples(
        st.just("set"),
        st.sampled_from(
            ["learning", "tail", "settled", "stepped", "steps_within_batch", "untrained", "had_update"]
        ),
        st.booleans(),
    ),
    st.tuples(st.just("gradients"), st.booleans()),
    st.tuples(st.just("set"), st.just("arrival"), st.sampled_from([FORWARD, OTHER])),
)  # fmt: skip
STATE = (
    "arrival", "backwards", "batches", "closer", "had_backward", "had_update", "inside", "last", "passes",
    "settled", "stepped", "tail", "usual_update",
)  # fmt: skip


def play(auto: Any, what: str, *args: Any) -> Any:
    if what == "pass":
        return auto.backward_ends(auto.backward_begins())
    if what == "set":
        return setattr(auto, *args)
    if what == "gradients":
        return GRADIENTS.update(on=args[0])
    more: tuple[Any, ...] = ((), {}) if what.startswith("optimizer") else ()
    return getattr(auto, what)(*args, *more)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(loop=st.lists(st.tuples(EVENTS, st.sampled_from([0, 1, 700, 2 * 10**7])), max_size=120))
def test_the_same_events_make_the_same_steps(
    native: ModuleType, monkeypatch: pytest.MonkeyPatch, loop: list[tuple[tuple[Any, ...], int]]
) -> None:
    """What automatic instrumentation does with the events of a loop, in both cores."""
    pair = Pair(native, monkeypatch)
    autos = [recognizer(*one) for one in zip(pair.modules, (pair.c, pair.python), strict=True)]
    GRADIENTS["on"] = True
    for core in (pair.c, pair.python):
        core.set_batch_path((0,))
        core.has_device = True
    for event, ns in loop:
        mine, other = (play(auto, *event) for auto in autos)
        assert mine == other
        pair.time.pass_by(ns)
    for name in STATE:
        assert getattr(autos[0], name) == getattr(autos[1], name), name
    pair.same()


def test_the_usual_path_of_automatic_instrumentation(pair: Pair) -> None:
    """asks → got → forward → backward → optimizer, with everything else handed to `StepRecognizer`."""
    GRADIENTS["on"] = True
    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        pair.time.set(3 * 10**9)
        auto = recognizer(module, core)
        core.set_batch_path((0,))
        asked = []
        for number in range(8):
            asked.append(auto.usual_request(ITERATOR))
            pair.time.pass_by(50)
            auto.usual_batch([[1, 2, 3]])
            assert auto.call_begins(MODEL) is False
            pair.time.pass_by(500)
            auto.backward_ends(auto.backward_begins())
            if number % 2:
                auto.optimizer_begins(ADAM, (), {})
                pair.time.pass_by(20)
                auto.optimizer_ends(ADAM, (), {})
        assert asked == [False, False, *[True] * 6], "an optimizer must have stepped"
        assert not auto.usual_request(OTHER_ITERATOR), "another iterator is not the usual case"
        assert auto.backwards == 8
    pair.same()
    last = pair.c.slots.newest(1)
    assert ring.micro_batches(last[ring.W_FLAGS]) == 2 and last[ring.W_SAMPLES] == 6
    assert last[ring.W_PHASES + FORWARD] == 1000


def test_made_without_init_everything_is_harmless(pair: Pair) -> None:
    """Copying and unpickling call only `__new__`."""
    for module in pair.modules[:1]:
        loop = module.Loop.__new__(module.Loop)
        assert loop.usual_request(ITERATOR) is False and loop.call_begins(MODEL) is False
        loop.optimizer_begins(ADAM, (), {})
        loop.optimizer_ends(ADAM, (), {})
        loop.count_micro_batches()
        for kind in (module.Phase, module.Batches):
            with pytest.raises(TypeError):
                kind.__new__(kind)


def test_times_that_overflow_are_harmless(pair: Pair) -> None:
    for core in (pair.c, pair.python):
        core.phase_began = -(2**63)
        core.overhead = 2**63 - 1
        core.scratch[ring.W_PHASES + FORWARD] = 2**64 - 1
        core.mark(FORWARD)
        core.mark(OTHER)
        core.roll(5)
        core.step()
    assert records(pair.c) == records(pair.python)


def test_a_core_is_freed(native: ModuleType) -> None:
    """Its views keep their memory alive, not the core; and nothing holds the ring."""
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


def test_marks_go_to_for_its_recorder(pair: Pair) -> None:
    for module, core in zip(pair.modules, (pair.c, pair.python), strict=True):
        pair.time.set(5 * 10**9)

        class Monitor(module.Marks):  # type: ignore[misc, name-defined]
            pass

        marks = Monitor(core)
        marks.lap("for" + "ward")
        pair.time.pass_by(21)
        marks.step()
        marks.step(0.25, samples=3)
        marks.lap("unheard")
        assert marks._recorder is core
    pair.same()
    with pytest.raises(TypeError, match="no recorder"):
        pair.modules[0].Marks(7)
    unready = pair.modules[0].Marks.__new__(pair.modules[0].Marks)
    unready.lap("forward")  # one that never got a recorder marks nothing


def test_phase_names() -> None:
    names = PhaseNames()
    assert names.register("forward") == ring.PHASES.index("forward")
    assert [names.register(f"own{n}") for n in range(5)] == [12, 13, 14, 15, OTHER]
    assert names.name(13) == "own1" and names.name(OTHER) == "other"
    assert names.folded == ["own4"]
