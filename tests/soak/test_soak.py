"""That the soak itself works: a few seconds of it, with no criterion a slow machine could fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak import report
from tests.soak.__main__ import soak
from tests.soak.figures import Sample, floor, median_slope, slope, slope_error


@pytest.mark.slow
def test_a_short_soak_reads_what_was_written(tmp_path: Path) -> None:
    found = soak(tmp_path, minutes=0.15, warm_up=1.0)
    assert found.read == found.written > 0 and found.lost == 0
    assert found.short_runs > 0 and found.scrapes > 0 and found.page_events > 0
    assert report.render(found).startswith("Measured on ")


def test_growth_is_found_in_what_comes_and_goes() -> None:
    """GIVEN memory that jumps up and down, growing or not WHEN it is judged THEN only growth counts."""
    jumps = [8 << 20 if (at // 7) % 2 else 0 for at in range(600)]
    flat = [Sample(float(at), (90 << 20) + jump, 0.0) for at, jump in enumerate(jumps)]
    growing = [one._replace(resident=one.resident + int(one.seconds * 10_000)) for one in flat]
    assert slope(growing) - slope(flat) == pytest.approx(10_000)
    assert slope(floor(flat)) == slope_error(floor(flat)) == 0.0
    assert slope(floor(growing)) == pytest.approx(10_000, rel=0.05)
    steady = [Sample(float(at), 90 << 20, 0.0) for at in range(600)]
    assert slope(steady) == median_slope(steady) == 0.0
