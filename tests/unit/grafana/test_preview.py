"""The preview's own logic: units, joins and legends, as Grafana does them."""

from __future__ import annotations

from typing import Any

import pytest

from docs.tools.grafana_preview.answers import legend
from docs.tools.grafana_preview.charts import step_color
from docs.tools.grafana_preview.tables import rows_of
from docs.tools.grafana_preview.units import shown


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.405, "percentunit", 0, "40 %"),
        (0.0031, "s", None, "3.1 ms"),
        (150.0, "s", None, "2.5 min"),
        (2 * 2**30, "bytes", None, "2.0 GiB"),
        (1536.0, "Bps", None, "1.5 KiB/s"),
        (412.0, "watt", 0, "412 W"),
        (1234567.0, "none", 0, "1,234,567"),
        (None, "none", 0, "–"),
        (float("nan"), "s", None, "–"),
    ],
)
def test_numbers_are_shown_in_their_unit(
    value: float | None, unit: str, decimals: int | None, text: str
) -> None:
    assert shown(value, unit, decimals) == text


def test_a_moment_is_shown_as_its_distance() -> None:
    assert shown(1000 * 940.0, "dateTimeFromNow", now=1000.0) == "1.0 min ago"


def test_answers_are_joined_by_the_label_and_sorted() -> None:
    """GIVEN a run with a finding and one without THEN both are rows, the known value first."""
    names = {"run": "Run", "rule": "Finding", "Value #B": "Gain"}
    steps = [
        {"id": "joinByField", "options": {"byField": "run"}},
        {"id": "organize", "options": {"renameByName": names}},
        {"id": "sortBy", "options": {"sort": [{"field": "Gain", "desc": True}]}},
    ]
    runs = [{"metric": {"run": run}, "value": [0, "1"]} for run in ("a", "b")]
    gains = [{"metric": {"run": "b", "rule": "input.bound"}, "value": [0, "1.5"]}]
    assert rows_of({"transformations": steps}, [runs, gains]) == [
        {"Run": "b", "Finding": "input.bound", "Gain": 1.5},
        {"Run": "a", "Finding": None, "Gain": None},
    ]


def test_legends_and_thresholds() -> None:
    assert (
        legend({"legendFormat": "GPU {{gpu}} of {{ instance }}"}, {"gpu": "1", "instance": "n"})
        == "GPU 1 of n"
    )
    steps: list[dict[str, Any]] = [{"value": None, "color": "red"}, {"value": 0.7, "color": "green"}]
    assert [step_color(steps, use) for use in (0.1, 0.7)] == ["red", "green"]
