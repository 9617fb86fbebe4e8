"""Nobody fills the history for everybody: the largest spender is cut first, and this is reported."""

from __future__ import annotations

import logging
import random
import time
from pathlib import Path

import pytest

from monitor.model.records import Counters, RingIdentity
from monitor.model.steps import Columns
from monitor.store import retention, verify
from monitor.store.spending import MAX_KEPT, Spending
from monitor.store.store import Store
from tests.unit.store import made

NOW = 1_750_000_000.0
ALICE, MALLORY = 1001, 1002


def ring(owner: int, name: str = "r") -> RingIdentity:
    return RingIdentity(f"{owner}:{name}", f"{name}@{owner}", 0, "trainer", 0, (), owner)


def noise(count: int, first: int) -> Columns:
    """Steps that do not compress."""
    draw = random.Random(first)
    begin = [first * 10**9 + at * 10**6 for at in range(count)]
    samples, none = [draw.getrandbits(31) for _ in range(count)], [0] * count
    return Columns.of(
        list(range(first, first + count)), begin, [10**6] * count, {}, samples=samples,
        flags=none, tokens=none, overhead=none, gc=none, loss=None, epoch=None, memory=None, device=None,
    )  # fmt: skip


def write(store: Store, owner: int, batches: int, name: str = "r", first: int = 1) -> None:
    for at in range(batches):
        store.records(ring(owner, name), noise(1000, first + at * 1000), Counters())
        store.commit()


def test_whoever_spends_most_is_cut_first(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """GIVEN Mallory writes far more than a minute allows WHEN Alice writes a little THEN hers is kept."""
    store = Store(tmp_path / "history.db")
    store.spending = Spending(limit=100_000)
    with caplog.at_level(logging.WARNING):
        write(store, MALLORY, 60)
        write(store, ALICE, 5)
        write(store, MALLORY, 60, first=60_001)
    assert len(store.steps(f"r@{ALICE}").step) == 5000
    kept = len(store.steps(f"r@{MALLORY}").step)
    assert 0 < kept < 40_000 and store.lost_steps == 120_000 - kept
    (trouble,) = store.spending.trouble()
    assert (trouble.owner_uid, trouble.reason, trouble.count) == (MALLORY, "history", store.lost_steps)
    assert len([one for one in caplog.records if "being cut" in one.message]) == 1, "said, but once a minute"
    store.close()


def test_a_new_minute_is_a_new_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    budget = Spending(limit=100)
    assert budget.allows(1, 100) and not budget.allows(1, 1)
    clock[0] = 61.0
    assert budget.allows(1, 100)


def test_runs_without_number_are_cut_too(tmp_path: Path) -> None:
    store = Store(tmp_path / "history.db")
    store.spending = Spending(limit=200_000)
    crowd = [made.run(f"m{at}", owner_uid=MALLORY, started=1000.0 + at) for at in range(100)]
    store.append(made.snapshot(NOW, *crowd))
    store.append(made.snapshot(NOW + 1, made.run("hers", owner_uid=ALICE)))
    kept = {one.run.id for one in store.runs()}
    assert "hers" in kept and 0 < len(kept) - 1 < 100
    store.close()


def test_the_oldest_steps_of_the_largest_go_first(tmp_path: Path) -> None:
    """GIVEN a history that is too large, mostly Mallory's, with Alice's steps the oldest THEN hers stay."""
    store = Store(tmp_path / "history.db")
    write(store, ALICE, 10)
    write(store, MALLORY, 100, "new", first=10_000_001)
    write(store, MALLORY, 100, "old", first=1_000_001)
    assert store._database is not None
    used = retention.used_bytes(store._database)
    for _ in range(100):
        if not retention.shrink(store._database, used // 2):
            break
    assert retention.used_bytes(store._database) <= used // 2
    assert len(store.steps(f"r@{ALICE}").step) == 10_000
    left = [len(store.steps(f"{name}@{MALLORY}").step) for name in ("old", "new")]
    assert left[0] < left[1], "the oldest first"
    store.close()


def test_runs_that_fill_the_history_go_before_the_steps_of_others(tmp_path: Path) -> None:
    """GIVEN a history filled with Mallory's runs, which have no steps THEN Alice's steps and run stay."""
    store = Store(tmp_path / "history.db")
    store.append(made.snapshot(NOW, made.run("hers", owner_uid=ALICE)))
    write(store, ALICE, 10)
    for tick in range(5):
        crowd = [made.run(f"m{tick}-{at}", owner_uid=MALLORY) for at in range(60)]
        store.append(made.snapshot(NOW + 1 + tick, *crowd))
    assert store._database is not None
    used = retention.used_bytes(store._database)
    while retention.shrink(store._database, used // 2):
        pass
    assert retention.used_bytes(store._database) <= used // 2
    assert len(store.steps(f"r@{ALICE}").step) == 10_000 and store.run("hers") is not None
    assert {one.run.id for one in store.runs()} > {f"m4-{at}" for at in range(60)}, "his newest are there"
    store.close()


def test_predictions_and_series_of_one_owner_have_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN Mallory starts runs and names phases endlessly THEN his oldest series and predictions go."""
    monkeypatch.setattr(retention, "MAX_SERIES", 50)
    monkeypatch.setattr(retention, "MAX_PREDICTIONS", 20)
    store = Store(tmp_path / "history.db")
    hers = made.run("hers", owner_uid=ALICE, state="running", ended=None)
    for at in range(30):
        id = f"m{at}@{MALLORY}"
        his = made.run(id, owner_uid=MALLORY, state="running", ended=None)
        promises = tuple(made.finding(rule, 1.0, 2.0, 3.0, run=id) for rule in ("a.b", "c.d"))
        hers_too = (made.finding("a.b", 1.0, 2.0, 3.0, run="hers"),)
        store.append(made.snapshot(NOW + at, his, hers, findings=promises + hers_too))
    store.maintain(NOW + 30)
    assert len(store.ledger(run="hers")) == 1
    assert {one.run for one in store.ledger()} == {"hers", *(f"m{at}@{MALLORY}" for at in range(20, 30))}
    page = store.history(NOW - 1, NOW + 31)
    of_runs = [one.subject for one in page.series if one.subject.startswith("run:m")]
    assert len(of_runs) == 50 and f"run:m29@{MALLORY}" in of_runs and f"run:m0@{MALLORY}" not in of_runs
    assert any(one.subject == "run:hers" for one in page.series)
    store.close()


def test_a_crowd_that_ends_at_once_holds_up_no_tick_and_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN many runs of Mallory's and one of Alice's that end in one tick THEN hers is compared with its
    predecessor at once, and his one after another."""
    looked: list[str] = []
    monkeypatch.setattr(verify, "verify", lambda store, record: looked.append(record.run.id))
    watch = verify.Verifier(Store(tmp_path / "history.db"))
    runs = [made.run(f"m{at}", owner_uid=MALLORY) for at in range(30)]
    runs.append(made.run("hers", owner_uid=ALICE))
    watch.update(made.snapshot(NOW, *map(made.live, runs)))
    over = made.snapshot(NOW + 1, *runs)
    watch.update(over)
    assert looked == ["m0", "hers"]
    for _ in range(40):
        watch.update(over)
    assert len(looked) == len(set(looked)) == 31


def test_owners_without_end_are_counted_together() -> None:
    """GIVEN somebody with a range of uids WHEN each of them spends too much THEN only some are told apart."""
    spending = Spending(limit=0)
    for uid in range(2 * MAX_KEPT):
        assert not spending.allows(uid, 1)
        spending.refuse(uid, "too large")
    told = spending.trouble()
    assert len(told) <= 2 * (MAX_KEPT + 1)
    assert sum(one.count for one in told) == 4 * MAX_KEPT
