"""The one formatter, checked by the same vectors as the live page's copy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from monitor.model import units

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "units.json").read_text(encoding="utf-8"))
CASES = [(name, given, text) for name, cases in VECTORS["cases"].items() for given, text in cases]


@pytest.mark.parametrize(("name", "given", "text"), CASES)
def test_a_quantity_reads_the_same_everywhere(name: str, given: list[Any], text: object) -> None:
    assert getattr(units, name)(*given) == text


def test_what_the_page_copies_has_cases() -> None:
    assert set(VECTORS["page"]) <= set(VECTORS["cases"])


def test_what_is_not_a_number_is_said() -> None:
    assert [units.number(value) for value in (float("nan"), float("inf"))] == ["nan", "inf"]


def test_evidence_is_shown_by_the_unit_its_key_carries() -> None:
    shown = {
        "data_wait_seconds": (0.0451, "45.1 ms"),
        "read_bytes_per_second": (1e8, "100 MB/s"),
        "rss_bytes": (1 << 20, "1 MiB"),
        "busy_ratio": (0.42, "42 %"),
        "power_watts": (310.4, "310 W"),
        "pinned": (True, "yes"),
        "workers": (None, "—"),
    }
    assert {key: units.value_of(key, value) for key, (value, _) in shown.items()} == {
        key: text for key, (_, text) in shown.items()
    }
