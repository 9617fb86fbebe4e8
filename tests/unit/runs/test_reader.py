"""The life of a visible run: endings, expiry, cleaning, growth."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from monitor.model.clock import Moment
from monitor.model.records import MOST, Counters, RingIdentity
from monitor.model.snapshot import encode
from monitor.model.steps import Columns
from monitor.runs import cleanup
from monitor.runs import reader as reader_module
from monitor.runs.reader import KEEP_ENDED_SECONDS, RunReader
from sdk import ring
from tests.unit.runs.rings import Script


class Kept:
    """A sink that keeps step numbers."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.cursor = 0
        self.commits = 0

    def resume(self, key: str) -> Counters | None:
        return None

    def replay(self, identity: RingIdentity) -> list[Columns]:
        return []

    def records(self, identity: RingIdentity, columns: Columns | None, counters: Counters) -> None:
        self.numbers += list(columns.numbers) if columns is not None else []
        self.cursor = counters.cursor

    def commit(self) -> None:
        self.commits += 1

    def finished(self, key: str) -> bool:
        return True


def later(now: Moment, seconds: float) -> Moment:
    return Moment(now.wall + seconds, now.monotonic + seconds)


@pytest.mark.parametrize(
    ("state", "shown"), [(ring.S_ENDED, "ended"), (ring.S_FAILED, "failed"), (ring.S_INTERRUPTED, "ended")]
)
def test_an_ended_run_stays_some_minutes_then_its_file_goes(tmp_path: Path, state: int, shown: str) -> None:
    script = Script(tmp_path)
    script.steps([10.0] * 30)
    script.end(state)
    sink = Kept()
    reader = RunReader([tmp_path], sink=sink)
    now = script.now()
    reader.poll(now)
    (run,) = reader.runs(now, (), ())
    assert run.state == shown and run.ended == pytest.approx(now.wall) and run.ranks[0].live_phase is None
    assert sink.numbers == list(range(1, 31)) and reader.pids() == {}
    reader.poll(later(now, KEEP_ENDED_SECONDS - 1))
    assert reader.runs(now, (), ())
    reader.poll(later(now, KEEP_ENDED_SECONDS + 1))
    assert not reader.runs(now, (), ()) and script.path.exists()
    reader.poll(later(now, cleanup.KEEP_SECONDS + 60))
    assert not script.path.exists()


def test_a_run_that_ended_long_before_the_daemon_came_is_seen_once(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([10.0] * 3)
    script.end()
    reader = RunReader([tmp_path], sink=Kept())
    now = later(script.now(), 3 * KEEP_ENDED_SECONDS)
    reader.poll(now)
    assert [run.state for run in reader.runs(now, (), ())] == ["ended"]
    reader.poll(now)
    assert reader.runs(now, (), ()) == ()


def test_without_a_sink_nothing_is_removed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.end()
    reader = RunReader([tmp_path])
    reader.poll(later(script.now(), 10 * cleanup.KEEP_SECONDS))
    reader.poll(later(script.now(), 20 * cleanup.KEEP_SECONDS))
    assert script.path.exists()


def test_a_live_ring_is_never_removed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    reader = RunReader([tmp_path], sink=Kept())
    for hours in range(5):
        reader.poll(later(script.now(), hours * 3600.0))
    assert script.path.exists()


def test_removal_spares_what_took_the_name(tmp_path: Path) -> None:
    script = Script(tmp_path)
    dead = cleanup.DeadRing(
        str(tmp_path), script.path.name, script.path.stat().st_ino + 1, "k", 0.0, 1, worker=False
    )
    cleanup.remove(dead)
    assert script.path.exists()


def test_pressure_lets_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "_is_short_of_room", lambda path: False)
    half = cleanup.PRESSURE_BYTES // 2
    dead = [
        cleanup.DeadRing(str(tmp_path), f"{at}.ring", at, str(at), float(at), half, False) for at in range(4)
    ]
    assert [one.key for one in cleanup.surplus(dead, 200.0, set())] == ["0", "1"]
    assert cleanup.surplus(dead, 30.0, set()) == []


def test_a_growing_ring_is_followed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.writer.words[ring.H_STARTED_MONO] = 2**61  # "just started": it may grow
    reader = RunReader([tmp_path])
    for _ in range(5):
        script.steps([1.0] * 2000)
        reader.poll(script.now())
    rank = reader.runs(script.now(), (), ())[0].ranks[0]
    assert (rank.steps, rank.lost) == (10_000, 0)


def test_who_looks_once_reads_all_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN more records than a poll takes WHEN nobody will poll again THEN all of them are read."""
    monkeypatch.setattr(reader_module, "MAX_RECORDS", 100)
    script = Script(tmp_path)
    script.steps([10.0] * 950)
    script.end()
    polled, caught_up = RunReader([tmp_path]), RunReader([tmp_path])
    polled.poll(script.now())
    caught_up.catch_up(script.now())
    assert [one.counters.read for one in polled.followers] == [100]
    assert [one.counters.read for one in caught_up.followers] == [950]
    assert not caught_up.followers[0].alive


def test_late_start_gives_the_same_figures(tmp_path: Path) -> None:
    """GIVEN a reader from the start and one that starts late THEN both say the same."""
    script = Script(tmp_path)
    early = RunReader([tmp_path])
    for _ in range(30):
        script.steps([7.0] * 100, samples=3)
        early.poll(script.now())
    late = RunReader([tmp_path])
    late.poll(script.now())
    (a,), (b,) = early.runs(script.now(), (), ()), late.runs(script.now(), (), ())
    assert (a.steps, a.ranks[0].whole.count) == (b.steps, b.ranks[0].whole.count) == (3000, 3000)
    assert a.samples_per_second == pytest.approx(b.samples_per_second)
    assert a.ranks[0].whole == b.ranks[0].whole and len(a.timeline) == len(b.timeline)


def test_new_phase_names_are_picked_up(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([1.0] * 5)
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    script.writer.write_meta(
        {"kind": "trainer", "run": "run-1", "rank": 0, "name": "demo", "phases": ["mix"]}
    )
    script.step(2.0, {12: 1.5})
    reader.poll(script.now())
    assert "mix" in [phase.name for phase in reader.runs(script.now(), (), ())[0].phases]


@pytest.mark.parametrize(("feeds", "own", "name"), [
    ([True], [], "rollout"),
    ([True, False], [], "validate"),
    ([], [], "validate"),
    ([True], ["rollout"], "validate"),
])  # fmt: skip
def test_an_evaluation_that_the_training_learns_from_is_played(
    feeds: list[bool], own: list[str], name: str, tmp_path: Path
) -> None:
    """GIVEN a model that is asked without gradients WHEN the source shows that later losses need all of it
    THEN an agent plays; the recorder itself has named such a phase where it knows better."""
    script = Script(tmp_path)
    work = [{"phase": "validate", "module": True, "feeds": one} for one in feeds]
    meta = {"kind": "trainer", "run": "run-1", "rank": 0, "name": "demo", "phases": own}
    script.writer.write_meta(meta | {"config": {"work": work}})
    script.step(2.0, {ring.PHASES.index("validate"): 1.5})
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    assert name in [phase.name for phase in reader.runs(script.now(), (), ())[0].phases]


def test_a_clock_that_was_set_removes_nothing_and_hides_nothing(tmp_path: Path) -> None:
    script = Script(tmp_path)
    reader = RunReader([tmp_path], sink=Kept())
    reader.poll(script.now())
    script.end()
    now = script.now()
    for days in (0, 40, -40):
        for seconds in (1.0, 40.0, 80.0):
            set_clock = Moment(now.wall + days * 86400, now.monotonic + seconds)
            reader.poll(set_clock)
            assert [run.state for run in reader.runs(set_clock, (), ())] == ["ended"]
    assert script.path.exists()


def test_steps_newer_than_the_tick_are_no_steps_of_the_future(tmp_path: Path) -> None:
    """GIVEN a tick that began ten seconds ago WHEN it gets to the rings THEN steps written since then are as
    good as any."""
    script = Script(tmp_path)
    script.clock = time.monotonic_ns() - 10**9
    script.steps([1.0] * 500)
    reader = RunReader([tmp_path])
    late = Moment(time.time() - 10.0, time.monotonic() - 10.0)
    reader.poll(late)
    (run,) = reader.runs(late, (), ())
    assert (run.steps, run.ranks[0].whole.count, reader.dropped) == (500, 500, {})


def test_a_claimed_start_in_the_future_dates_no_step_there(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([1.0] * 5)
    script.writer.words[ring.H_STARTED_WALL] += 400 * 86400 * 10**9
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    (run,) = reader.runs(script.now(), (), ())
    newest = run.ranks[0].last_step_time
    assert newest is not None and newest < script.now().wall + 2 * 86400 > run.started


def test_what_was_recorded_while_the_clock_was_ahead_began_by_the_clock_as_it_is_now(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([1000.0] * 5)
    script.writer.words[ring.H_STARTED_WALL] += 400 * 86400 * 10**9
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    (run,) = reader.runs(script.now(), (), ())
    assert run.started == pytest.approx(script.now().wall - 5.0)


@pytest.mark.parametrize("alive", [True, False])
def test_a_ring_from_before_the_machine_was_started_anew_is_no_trouble(tmp_path: Path, alive: bool) -> None:
    """GIVEN steps later than this machine has been running WHEN their writer is gone THEN nobody is told; one
    that is there has a clock that makes no sense, and that is said."""
    script = Script(tmp_path)
    script.clock = time.monotonic_ns() + 10**15
    script.writer.words[ring.H_STARTED_MONO] = script.clock
    script.steps([1.0] * 50)
    if not alive:
        script.writer.words[ring.H_PID] = 1 << 30
        script.end()
    now = Moment(time.time(), time.monotonic())
    reader = RunReader([tmp_path])
    for _ in range(2):
        reader.poll(now)
    assert (bool(reader.dropped), len(reader.runs(now, (), ()))) == (alive, int(alive))


def test_a_late_rank_joins_a_run_that_seemed_to_be_over(tmp_path: Path) -> None:
    """GIVEN rank 0 has ended and was dropped WHEN rank 1 turns up THEN the run has both, once."""
    first = Script(tmp_path, "run-1", 0, world=2)
    first.steps([1.0] * 5)
    first.end()
    reader = RunReader([tmp_path])
    reader.poll(first.now())
    assert [run.state for run in reader.runs(first.now(), (), ())] == ["ended"] and reader.followers == []
    late = Script(tmp_path, "run-1", 1, world=2)
    late.steps([1.0] * 9)
    for _ in range(2):
        reader.poll(late.now())
        (run,) = reader.runs(late.now(), (), ())
        assert [(rank.rank, rank.state, rank.steps) for rank in run.ranks] == [
            (0, "ended", 5),
            (1, "running", 9),
        ]
    late.end()
    reader.poll(late.now())
    (run,) = reader.runs(late.now(), (), ())
    assert (run.state, len(run.ranks)) == ("ended", 2) and reader.followers == []


def test_an_ended_run_is_made_once(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.steps([1.0] * 5)
    script.end()
    reader = RunReader([tmp_path])
    reader.poll(script.now())
    (first,) = reader.runs(script.now(), (), ())
    reader.poll(later(script.now(), 1.0))
    (again,) = reader.runs(later(script.now(), 1.0), (), ())
    assert again is first and reader.followers == []


def test_claims_too_large_to_write_down_stop_at_a_limit(tmp_path: Path) -> None:
    """GIVEN a million steps of 2^44 tokens each THEN their sum can still be encoded and stored."""
    counters = Counters(tokens=(1 << 62) - 5, samples=1 << 61, phase_ns=[(1 << 62) + 7] * ring.PHASE_SLOTS)
    counters.tokens += 1 << 44
    counters.limit()
    assert counters.tokens == MOST and counters.samples == 1 << 61 and max(counters.phase_ns) == MOST
    assert encode(counters)


def test_meta_that_changes_all_the_time_is_read_a_few_rings_a_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "META_PER_POLL", 4)
    scripts = [Script(tmp_path, f"run-{at}") for at in range(10)]
    reader = RunReader([tmp_path])
    reader.poll(scripts[0].now())
    for script in scripts:
        script.writer.write_meta({"kind": "trainer", "run": script.path.name[:-7], "rank": 0, "name": "new"})
    fresh = []
    for _ in range(4):
        reader.poll(scripts[0].now())
        fresh.append(sum(follower.meta.name == "new" for follower in reader.followers))
    assert fresh == [4, 8, 10, 10]
