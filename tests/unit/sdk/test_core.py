"""The hot half in C and in Python: the same calls at the same times make the same records, word by word.

The C one is built here with a clock that the test sets, so every nanosecond can be compared.
"""

from __future__ import annotations

import gc
import importlib.util
import subprocess
import sys
import sysconfig
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sdk import ring
from sdk.core import plain, plainfaces
from sdk.phases import BETWEEN, DATA, FORWARD, OTHER, VALIDATE
from sdk.writer import Slots, memory_slots
from tests.conftest import require_program

SOURCE = Path(plain.__file__).with_name("native.c")
SLOTS = 64


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return build(tmp_path_factory.mktemp("native"))


def build(folder: Path) -> ModuleType:
    compiler = require_program("cc")
    if not sys.platform.startswith("linux"):
        pytest.skip("the C core is for Linux")
    target = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_paths()['include']}"
    flags = ["-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
    flags += ["-Wno-missing-field-initializers", "-Wno-cast-function-type", "-DTEST_CLOCK"]
    subprocess.run([compiler, *flags, include, str(SOURCE), "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location("native", target)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Time:
    """The clock of both cores."""

    def __init__(self, native: ModuleType) -> None:
        self._set = native.set_clock
        self.set(10**9)

    def set(self, now: int) -> None:
        self.now = now
        self._set(now)

    def pass_by(self, ns: int) -> None:
        self.set(self.now + ns)


class Asked:
    """What a core calls, written down. Stands in for `Recorder`."""

    calls: list[tuple[str, Any]]
    slots: Slots
    raises: BaseException | None

    def rare(self, now: int) -> None:
        self.calls.append(("rare", self.steps))  # type: ignore[attr-defined]
        self.next_call = self.steps + 3  # type: ignore[attr-defined]
        self.next_slow = now + 10**6
        if self.raises is not None:
            raise self.raises

    def unusual(self, duration: int) -> None:
        self.calls.append(("unusual", duration))
        self.special = self.steps < 2  # type: ignore[attr-defined]

    def full(self, _: int) -> None:
        self.calls.append(("full", self.steps))  # type: ignore[attr-defined]

    def failed(self, error: Exception) -> None:
        self.calls.append(("failed", error is self.raises))

    def first_lap(self, name: Any) -> None:
        self.calls.append(("first_lap", name))

    def say(self, loss: Any = None, **more: Any) -> None:
        self.calls.append(("say", (loss, {name: said for name, said in more.items() if said is not None})))
        self.tell(more.get("samples"), more.get("tokens"), loss)  # type: ignore[attr-defined]

    def device_begins(self, _: int) -> None:
        self.calls.append(("device_begins", 0))

    def device_ends(self, _: int) -> None:
        self.calls.append(("device_ends", 0))

    def look_at(self, batch: Any) -> None:
        self.calls.append(("look_at", len(batch)))
        self.scratch[ring.W_SAMPLES] += 1000  # type: ignore[attr-defined]


def make(module: Any) -> Any:
    class Probe(Asked, module.Core):  # type: ignore[misc, name-defined]
        pass

    core = Probe()
    core.calls, core.slots, core.raises = [], memory_slots(), None
    core.use(core.slots)
    for name, phase in (("data", DATA), ("forward", FORWARD), ("own", 12)):
        core.know(name, phase)
    return core


class Pair:
    """Both cores, driven together."""

    def __init__(self, native: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        self.time = Time(native)
        monkeypatch.setattr(plain, "clock", lambda: self.time.now)
        self.c, self.python = make(native), make(plain)
        faces = {name: getattr(plainfaces, name) for name in ("Face", "Phase", "Batches", "Loop")}
        self.modules = native, SimpleNamespace(**faces)

    def both(self, what: str, *args: Any, **kwargs: Any) -> Any:
        mine, other = (getattr(core, what)(*args, **kwargs) for core in (self.c, self.python))
        assert mine == other
        return mine

    def same(self) -> None:
        assert records(self.c) == records(self.python)
        mine = [call for call in self.c.calls if call[0] != "full"]  # in Python the ring itself knows
        assert mine == self.python.calls
        for name in (
            "steps",
            "done",
            "cur",
            "since",
            "closed",
            "asked",
            "begun",
            "step_mode",
            "depth",
            "phase",
        ):
            assert getattr(self.c, name) == getattr(self.python, name), name
        assert words(self.c.scratch) == words(self.python.scratch)


def words(record: memoryview) -> list[int]:
    """A record without what it cost: that is another number in C."""
    return [word for at, word in enumerate(record.tolist()) if at not in (ring.W_OVERHEAD, 0, ring.W_COMMIT)]


def records(core: Any) -> list[list[int]]:
    slots = core.slots
    count = min(slots.head, SLOTS)
    first = ring.DATA_AT // 8
    found = [
        slots.words[first + at * ring.SLOT_WORDS : first + (at + 1) * ring.SLOT_WORDS] for at in range(count)
    ]
    header = [slots.words[at] for at in (ring.H_HEAD, ring.H_LIVE, ring.H_CLOSED)]
    return [header, *([one[0], one[ring.W_COMMIT], *words(one)] for one in found)]


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
