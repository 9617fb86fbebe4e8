"""Live and past runs as one list, and finding the one a user means."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.catalog.catalog import Catalog, Now
from monitor.catalog.rows import from_shown, row, shown
from monitor.model.errors import UserError
from monitor.store.history import History
from monitor.store.store import Store
from tests.unit.store import made


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    store = Store(tmp_path / "h.db")
    past = [made.run(f"abc-{at}", name=f"net{at}", started=100.0 * at) for at in range(1, 4)]
    store.append(made.snapshot(500.0, *past))
    live = made.live(made.run("abc-3", name="net3", started=300.0, steps=999))
    return Catalog(lambda: Now((live,), (made.finding("a.b", 1, 2, 3, "abc-3"),), 600.0), store)


def test_live_wins_over_stored_and_newest_comes_first(catalog: Catalog) -> None:
    rows = catalog.rows()
    assert [(one.run, one.state) for one in rows] == [
        ("abc-3", "running"),
        ("abc-2", "ended"),
        ("abc-1", "ended"),
    ]
    assert rows[0].steps == 999 and rows[0].findings == ("a.b",)
    assert [one.run for one in catalog.rows(state="ended", limit=1)] == ["abc-2"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("last", "abc-3"), ("last~2", "abc-1"), ("abc-2", "abc-2"), ("net1", "abc-1"), ("abc-1", "abc-1")],
)
def test_find(catalog: Catalog, wanted: str, found: str) -> None:
    assert catalog.record(wanted).run.id == found


def test_a_run_dated_in_the_future_is_not_the_last_for_ever(tmp_path: Path) -> None:
    """GIVEN a run recorded while the clock was a year ahead WHEN another follows with the clock set right
    THEN that is the last one; one that is live is in view whatever its date."""
    store = Store(tmp_path / "h.db")
    ahead, right = made.run("ahead", started=3e7), made.run("right", started=400.0)
    store.append(made.snapshot(3e7, ahead))
    store.append(made.snapshot(500.0, right))
    assert Catalog(lambda: Now((), (), 600.0), store).record("last").run.id == "right"
    live = made.live(ahead)
    assert Catalog(lambda: Now((live,), (), 600.0), store).record("last").run.id == "ahead"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("abc", "matches 3 runs"),
        ("net9", "similar: net"),
        ("zzzz", "there is no run 'zzzz'"),
        ("", "no run ''"),
        ("last~9", ""),
    ],
)
def test_not_found_is_one_sentence(catalog: Catalog, wanted: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        catalog.record(wanted)
    assert said in error.value.sentence and "\n" not in error.value.sentence and error.value.code == 2


def test_what_is_shown_can_be_read_back(catalog: Catalog) -> None:
    record = catalog.record("last")
    again = from_shown(shown(record))
    assert again == record and row(again) == row(record)
    with pytest.raises(UserError):
        from_shown({"id": 5})


def test_an_unreadable_history_hides_nothing_live(tmp_path: Path) -> None:
    (tmp_path / "h.db").write_bytes(b"no database " * 100)
    catalog = Catalog(lambda: Now((made.run(),), (), 1.0), History(tmp_path / "h.db"))
    assert [one.run for one in catalog.rows()] == ["run-1"]
    assert catalog.trouble is not None and "cannot be read" in catalog.trouble
