"""Quantities as text, where the screens' own tests do not look."""

from __future__ import annotations

import pytest

from monitor.model import units


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "—"), (0.0, "0 %"), (0.00006, "0.006 %"), (0.0006, "0.06 %"), (0.011, "1.1 %"), (0.124, "12 %")],
)
def test_small_percentages_keep_two_digits(ratio: float | None, text: str) -> None:
    assert units.small_percent(ratio) == text


def test_a_bare_percentage_has_no_sign_and_energy_is_in_kilowatt_hours() -> None:
    assert (units.bare_percent(0.62), units.bare_percent(None)) == ("62", "—")
    assert (units.energy(3.1e7), units.energy(None)) == ("8.6 kWh", "—")
