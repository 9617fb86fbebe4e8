"""Every screen, character by character, with the clock frozen. See tests/tui/shots.py for updating."""

from __future__ import annotations

import difflib

import pytest

from tests.tui.shots import GOLDEN, SHOTS, Shot


@pytest.mark.slow
@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name)
def test_looks_as_approved(shot: Shot) -> None:
    for path, now in shot.take().items():
        approved = path.read_text(encoding="utf-8")
        difference = "\n".join(
            difflib.unified_diff(approved.splitlines(), now.splitlines(), path.name, "now", lineterm="")
        )
        assert now == approved, f"\n{difference}\n\nif this was meant: python -m tests.tui.shots --update"


def test_no_golden_is_left_over() -> None:
    known = {f"{shot.name}-{size}.txt" for shot in SHOTS for size in shot.sizes}
    assert {path.name for path in GOLDEN.glob("*.txt")} == known


def test_every_line_fits_its_terminal() -> None:
    for path in GOLDEN.glob("*.txt"):
        columns, rows = (int(part) for part in path.stem.rsplit("-", 1)[1].split("x"))
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) == rows, path.name
        assert max(map(len, lines)) <= columns, path.name


def test_simulated_readings_say_so_on_every_screen() -> None:
    for path in GOLDEN.glob("*.txt"):
        if path.stem.startswith(("overview-no-gpu", "overview-consumer")):
            continue
        assert "simulated" in path.read_text(encoding="utf-8").splitlines()[0], path.name


def test_ascii_pictures_hold_ascii_only() -> None:
    for path in GOLDEN.glob("ascii*.txt"):
        assert path.read_text(encoding="utf-8").isascii(), path.name
