"""A part of a run looked at more closely, and what its charts say where one points."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.catalog.catalog import Catalog, Now
from monitor.catalog.close_up import LEAST_SECONDS, close_up, span
from monitor.catalog.dossier import Dossier, gather
from monitor.document import scale
from monitor.document.run_page import run_page
from monitor.document.timed import MOST_LOOKS, looks
from monitor.model.errors import UserError
from monitor.runs.reader import RunReader
from monitor.store.store import Store
from tests.unit.document import made
from tests.unit.runs.rings import Script

STEP = 0.05
SLOW = (1000, 1010)
"""Steps that wait for their data: 0.2 s instead of 0.05."""


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """A run of 2,000 steps, ten of them slow; its timeline has two windows, far too coarse to show them."""
    script = Script(tmp_path, phases=[])
    for at in range(2000):
        slow = SLOW[0] <= at < SLOW[1]
        script.step(STEP * 1e3 * (4 if slow else 1), {0: 180.0 if slow else 30.0}, samples=8)
    store = Store(tmp_path / "history.db")
    RunReader([script.path.parent], sink=store).poll(script.now())
    store.commit()
    steps = store.steps("run-1")
    begin, end = steps.begin[0], steps.begin[-1] + steps.seconds[-1]
    half = (end - begin) / 2
    windows = tuple(
        replace(one, start=begin + at * half, seconds=half, rss_bytes=1 << (30 + at))
        for at, one in enumerate(made.run().timeline[:2])
    )
    run = made.record(made.run(started=begin, ended=end, first_step_time=begin, timeline=windows)).run
    yield Catalog(lambda: Now((run,), (), end), store)
    store.close()


def closer(catalog: Catalog, begin: float, end: float) -> Dossier:
    return close_up(catalog, gather(catalog, "run-1"), begin, end)


def test_a_part_of_a_run_shows_what_the_whole_hides(catalog: Catalog) -> None:
    """GIVEN ten slow steps in a run whose windows last 50 s WHEN one looks at 10 s around them THEN the slow
    ones stand out, with their share of data, and nothing else of the run is there."""
    found = closer(catalog, 46.0, 56.0)
    assert found.span == (46.0, 56.0) and len(found.stretches) > 20
    assert all(46.0 <= part.begin < part.end <= 56.0 for part in found.stretches)
    slow = [part for part in found.stretches if (part.window.step_max or 0.0) > 0.15]
    assert slow and all(49.9 < part.begin < 52.1 for part in slow)
    waiting = max(part.window.phases["data"] for part in found.stretches)
    usual = min(part.window.phases["data"] for part in found.stretches)
    assert waiting == pytest.approx(0.9, abs=0.01) and usual == pytest.approx(0.6, abs=0.01)
    sizes = {part.window.rss_bytes for part in found.stretches}
    assert sizes == {1 << 30, 1 << 31}, "what no step holds is that of the coarse window"


def test_what_is_not_about_a_moment_is_that_of_the_run(catalog: Catalog) -> None:
    whole, part = gather(catalog, "run-1"), closer(catalog, 46.0, 56.0)
    assert (part.account, part.spread, part.sentence) == (whole.account, whole.spread, whole.sentence)
    page = run_page(part)
    assert "From 46 s to 56 s. " in page and 'data-from="46.0"' in page and "Show the whole run" in page
    assert "Show the whole run" not in run_page(whole)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ((50.0, 40.0), (40.0, 50.0)),
        ((-30.0, 20.0), (0.0, 20.0)),
        ((50.0, 50.1), (50.05 - LEAST_SECONDS / 2, 50.05 + LEAST_SECONDS / 2)),
        ((1e9, 2e9), (101.5 - LEAST_SECONDS, 101.5)),
    ],
)
def test_a_part_lies_in_the_run(
    catalog: Catalog, asked: tuple[float, float], shown: tuple[float, float]
) -> None:
    assert closer(catalog, *asked).span == pytest.approx(shown, abs=0.01)


def test_a_run_without_kept_steps_shows_its_windows() -> None:
    catalog = Catalog(lambda: Now((made.record(made.run()).run,), (), 1040.0), None)
    found = closer(catalog, 10.0, 20.0)
    assert [part.window.first_step for part in found.stretches] == [at * 10 + 1 for at in range(10, 20)]
    assert run_page(found)


def test_a_part_without_steps_still_leads_back() -> None:
    assert "Show the whole run" in run_page(replace(made.dossier(), stretches=(), span=(0.0, 5.0)))


@pytest.mark.parametrize("words", [("x", "1"), (None, "1"), ("1", None), ("nan", "1"), ("1", "inf")])
def test_what_is_no_span_is_one_sentence(words: tuple[str | None, str | None]) -> None:
    with pytest.raises(UserError, match="seconds since its start"):
        span(*words)


def test_marks_of_a_part_are_moments_of_the_run() -> None:
    axis = scale.of_time(10.0, 95.0)
    assert [tick.text for tick in axis.ticks] == [
        "1 min 36 s",
        "1 min 38 s",
        "1 min 40 s",
        "1 min 42 s",
        "1 min 44 s",
    ]
    assert axis.place(100.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("length", "begin", "texts"),
    [
        (2.0, 3.3, ["3.50 s", "4 s", "4.50 s", "5 s"]),
        (2.0, 3600.1, ["1:00:00.5", "1:00:01.0", "1:00:01.5", "1:00:02.0"]),
        (20.0, 3661.0, ["1:01:05", "1:01:10", "1:01:15", "1:01:20"]),
        (7200.0, 7200.0, ["2 h 00 min", "2 h 30 min", "3 h 00 min", "3 h 30 min", "4 h 00 min"]),
    ],
)
def test_no_two_marks_say_the_same(length: float, begin: float, texts: list[str]) -> None:
    assert [tick.text for tick in scale.of_time(length, begin).ticks] == texts


# ── Where one points ─────────────────────────────────────────────────────────────────────────────


def test_a_reader_who_points_is_told_the_figures_of_that_moment() -> None:
    page = run_page(made.dossier())
    told = re.findall(r'<g class="at"><title>([^<]*)</title>', page)
    assert "20.5 s, step 201\nforward 40 %\ndata loading 60 %" in told
    assert "20.5 s, step 201\nmedian 100 ms\np95 200 ms" in told
    assert any(text.endswith("GPU use 40 %") for text in told)
    assert "set-up: before the first step" in told
    assert sum(text.endswith(" steps") and " – " in text for text in told) > 2, (
        "and how many steps took how long"
    )


def test_a_gap_says_nothing_and_a_crowd_is_thinned() -> None:
    axis = scale.of_time(1000.0)
    near = [(float(at), str(at)) for at in range(400)]
    far = [(float(at), str(at)) for at in range(900, 1000)]
    found = list(looks(axis, near + far))
    assert 1 < len(found) <= MOST_LOOKS
    assert all(one.left < one.right for one in found)
    assert not any(one.left <= 0.65 <= one.right for one in found), "nobody read anything there"
    assert all(one.left <= axis.place(float(one.text)) <= one.right for one in found)
    assert list(looks(axis, [])) == [] and len(list(looks(axis, [(5.0, "one")]))) == 1


def test_what_is_not_ticked_is_hidden_by_the_style_alone() -> None:
    """Each box of a legend and the shapes it stands for have the same number, and the style a rule for it."""
    page = run_page(made.dossier())
    boxes = page.partition('<p class="legend">')[2].partition("</p>")[0].count("<input")
    assert boxes == 2
    for at in range(1, boxes + 1):
        assert f'of-{at}"' in page
    assert all(f":nth-child({at}) > input:not(:checked)) .of-{at}" in page for at in range(1, 18))
