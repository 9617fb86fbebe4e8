"""One user writes far more than can be kept: the history of the others stays complete."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.runs.reader import RunReader
from monitor.store.spending import Spending
from monitor.store.store import Store
from tests.faults.people import ALICE, MALLORY, look, person, require_root, shared_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    require_root()
    with shared_folder() as place:
        yield place


def test_a_flood_costs_its_own_history_only(folder: Path, tmp_path: Path) -> None:
    """GIVEN twelve rings of Mallory's that write as much as they can, and one of Alice's THEN her steps are
    kept, his are cut, and he is reported as their owner."""
    store = Store(tmp_path / "history.db")
    store.spending = Spending(limit=40_000)
    reader = RunReader([folder], sink=store)
    with person(folder, ALICE) as alice, person(folder, MALLORY) as mallory:
        mallory.train(*(f"m{at}" for at in range(12)), slots=1024)
        alice.train("good", slots=1024)
        for _ in range(20):
            mallory.step(500)
            alice.step(10)
            look(reader)
        look(reader)  # many runs are read in turns
        runs = look(reader)
    assert runs[f"good@{ALICE}"].steps == 200 and runs[f"m0@{MALLORY}"].steps == 10_000
    assert list(store.steps(f"good@{ALICE}").step) == list(range(1, 201))
    kept = sum(len(store.steps(f"m{at}@{MALLORY}").step) for at in range(12))
    assert 0 < kept < 120_000 and store.lost_steps == 120_000 - kept
    assert [(one.owner_uid, one.count) for one in store.spending.trouble()] == [(MALLORY, 120_000 - kept)]
    store.close()
