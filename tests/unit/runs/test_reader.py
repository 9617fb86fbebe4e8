"""The life of a run in view: endings, expiry, cleaning, growth."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.clock import Moment
from monitor.runs import clean
from monitor.runs.columns import Columns
from monitor.runs.reader import KEEP_ENDED_SECONDS, RunReader
from monitor.runs.sink import Counters, RingIdentity
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


@pytest.mark.parametrize(("state", "shown"), [(ring.S_ENDED, "ended"), (ring.S_FAILED, "failed")])
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
    reader.poll(later(now, clean.KEEP_SECONDS + 60))
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
    reader.poll(later(script.now(), 10 * clean.KEEP_SECONDS))
    reader.poll(later(script.now(), 20 * clean.KEEP_SECONDS))
    assert script.path.exists()


def test_a_live_ring_is_never_removed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    reader = RunReader([tmp_path], sink=Kept())
    for hours in range(5):
        reader.poll(later(script.now(), hours * 3600.0))
    assert script.path.exists()


def test_removal_spares_what_took_the_name(tmp_path: Path) -> None:
    script = Script(tmp_path)
    dead = clean.DeadRing(script.path, script.path.stat().st_ino + 1, "k", 0.0, 1, worker=False)
    clean.remove(dead)
    assert script.path.exists()


def test_pressure_lets_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean, "_is_short_of_room", lambda path: False)
    half = clean.PRESSURE_BYTES // 2
    dead = [clean.DeadRing(tmp_path / f"{at}.ring", at, str(at), float(at), half, False) for at in range(4)]
    assert [one.key for one in clean.surplus(dead, 200.0, set())] == ["0", "1"]
    assert clean.surplus(dead, 30.0, set()) == []


def test_a_growing_ring_is_followed(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.writer.words[ring.H_STARTED_MONO] = 2**61  # "just started": it may grow
    reader = RunReader([tmp_path])
    for _ in range(5):
        script.steps([1.0] * 2000)
        reader.poll(script.now())
    rank = reader.runs(script.now(), (), ())[0].ranks[0]
    assert (rank.steps, rank.lost) == (10_000, 0)


def test_late_start_gives_the_same_figures(tmp_path: Path) -> None:
    """GIVEN a reader from the start and one that comes late THEN both say the same."""
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
