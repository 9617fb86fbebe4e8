"""The screen in Chinese: every line as wide as the terminal in cells, and no name translated."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape

import pytest

from monitor import language
from monitor.language import cells
from monitor.tui.first_picture import Look, drawn
from tests.tui.shots import SHOTS
from tests.tui.stage import picture, staged

SIZES = ((80, 24), (120, 40), (200, 60))
SCENES = ("data-bound", "eight", "hung", "lost", "no-run", "throttled")
PROSE = re.compile(r"\b[a-z]{3,} [a-z]{3,} [a-z]{3,}\b")
LEFT = {"noise", "starved", "lasted", "encoder", "heat", "thermal", "energy", "trainer"}
"""Words of ours that stood alone."""
CODES = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


@pytest.fixture(autouse=True)
def chinese() -> Iterator[None]:
    language.use("zh")
    yield
    language.use("en")


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("scene", SCENES)
def test_every_line_fills_the_screen(scene: str, size: tuple[int, int]) -> None:
    rows = CODES.sub("", drawn(staged(scene).frame, size, Look())).split("\r\n")
    assert [cells.width(row) for row in rows] == [size[0]] * size[1]


def test_it_says_what_is_wrong_in_chinese() -> None:
    shown = asyncio.run(picture(staged("data-bound"), (120, 40)))
    assert "训练步耗时分布" in shown and "改法：" in shown and "预计提速" in shown
    assert "帮助" in shown.splitlines()[-1] and "退出" in shown.splitlines()[-1]
    assert "where the step goes" not in shown and "starved by" not in shown


def test_the_app_and_the_first_picture_agree() -> None:
    app = staged("data-bound")
    first = [row.rstrip() for row in CODES.sub("", drawn(app.frame, (120, 40), Look())).split("\r\n")]
    then = asyncio.run(picture(app, (120, 40))).splitlines()
    same = [a == b.replace("▸▲", " ▲", 1) for a, b in zip(first, then, strict=True)]
    assert sum(same) >= 30


@pytest.mark.parametrize(
    "name", ["overview-many", "run-data-bound", "run-past", "finding", "compare", "gpu-throttled", "history"]
)
def test_no_sentence_stays_english(name: str) -> None:
    """Names, code and commands do; three small words in a row are a sentence."""
    shot = next(one for one in SHOTS if one.name == name)
    for text in shot.take().values():
        assert not PROSE.findall(text)
        assert not set(re.findall(r"[a-z]+", text)) & LEFT


def test_a_saved_screen_draws_wide_characters_wide() -> None:
    made = asyncio.run(picture(staged("no-run"), (80, 24), svg=True))
    found = re.findall(r'textLength="([\d.]+)"[^>]*>([^<]+)</text>', made)
    lengths = {unescape(text): float(length) for length, text in found}
    cell = next(length / len(text) for text, length in lengths.items() if "gpumon" in text)
    assert any(cells.width(text) > len(text) for text in lengths)
    for text, length in lengths.items():
        assert length == pytest.approx(cells.width(text) * cell, abs=0.1), text
