"""The page of the `try` benchmark: what a row says, and what is counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.benchmarks.try_ import LENGTHS, ROWS
from tests.benchmarks.try_.catalog import CASES
from tests.benchmarks.try_.measure import Lengths, faster, is_clear
from tests.benchmarks.try_.report import falls_short, line, page, share_of_gain, share_of_promise


def row(name: str, *, hand: float, found: float | None, boost: float | None = None) -> dict[str, Any]:
    """Runs that differ by two percent."""
    costs = {"as it is": [1.0, 1.02], "by hand": [1.0 / hand, 1.02 / hand]}
    if boost is not None:
        costs["boost"] = [1.0 / boost, 1.02 / boost]
    ratio = {"likely": found, "low": found * 0.95, "high": found * 1.05} if found is not None else None
    return {
        "name": name, "costs": costs, "best": {"loader.num_workers": "2"} if found else None, "ratio": ratio,
        "effect": "identical" if found else None, "results": [], "took": 20.0,
    }  # fmt: skip


def test_shares_are_of_logarithms() -> None:
    half = row("plain_adam", hand=4.0, found=2.0, boost=2.0)
    assert share_of_gain(half) == pytest.approx(0.5) and share_of_promise(half) == pytest.approx(1.0)


def test_a_fix_that_brings_nothing_is_nothing_to_find() -> None:
    idle = row("reid_twin", hand=1.01, found=None)
    assert share_of_gain(idle) is None and share_of_promise(idle) is None
    assert "(nothing to find) | nothing clear | – | – | – | – | – |" in line(idle)


def test_a_fix_that_was_not_found_counts_as_nothing_reached() -> None:
    assert share_of_gain(row("plain_adam", hand=2.0, found=None)) == 0.0


def test_what_noise_explains_does_not_fall_short() -> None:
    close, far = (row("plain_adam", hand=2.0, found=2.0, boost=boost) for boost in (1.9, 1.2))
    goal = faster(close["costs"], "by hand")
    assert not falls_short(faster(close["costs"], "boost"), goal)
    assert falls_short(faster(far["costs"], "boost"), goal) and falls_short(None, goal)


def test_a_second_round_is_for_what_the_first_leaves_open() -> None:
    clear = row("plain_adam", hand=2.0, found=8.0, boost=8.0)
    small = row("plain_adam", hand=1.2, found=1.2, boost=1.2)
    assert is_clear(clear["costs"], faster(clear["costs"], "boost"), LENGTHS.clear)
    assert not is_clear(small["costs"], faster(small["costs"], "boost"), LENGTHS.clear)


def test_the_page_counts_each_kind_and_names_what_is_missing() -> None:
    table = [
        row("plain_adam", hand=2.0, found=2.0, boost=1.2),
        row("skorch_optimizer", hand=2.0, found=2.1, boost=2.1),
    ]
    text = page(table, ["tcn_twin"])
    assert "**1 scripts**" in text and "**1 library loops**" in text and "naive twins**" not in text
    assert "at least 90 % of it in **0 of 1**; less by more than noise explains in 1" in text
    assert "Not measured yet: tcn_twin." in text


def test_a_row_made_with_other_lengths_is_another() -> None:
    case = CASES["plain_adam"]
    assert Lengths(blocks=2).fixed(case) != LENGTHS.fixed(case) == LENGTHS.fixed(case)


def test_rows_on_file_are_of_known_cases() -> None:
    if ROWS.exists():
        assert set(json.loads(ROWS.read_text())) <= set(CASES)
