"""The picture before Textual is there: the same as the app's, and nothing of Textual is loaded for it."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import subprocess
import sys

import pytest

from monitor.tui.first_picture import ENTER, LEAVE, FirstPicture, Look, drawn
from tests.tui.stage import picture, staged

PLAIN = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


def rows(text: str) -> list[str]:
    return [row.rstrip() for row in PLAIN.sub("", text).split("\r\n")]


def test_it_is_what_the_app_paints() -> None:
    """But for the selection and the keys, which only the app has, and where a scrollbar takes a column."""
    app = staged("data-bound")
    first = rows(drawn(app.frame, (120, 40), Look()))
    then = asyncio.run(picture(app, (120, 40))).splitlines()
    same = [a == b.replace("▸▲", " ▲", 1) for a, b in zip(first, then, strict=True)]
    assert len(first) == 40 and sum(same) >= 30, [a for a, ok in zip(first, same, strict=True) if not ok]


def test_nothing_of_textual_is_loaded_for_it() -> None:
    code = (
        "import sys, monitor.tui.start; print([name for name in sys.modules if name.startswith('textual')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_once_closed_it_draws_no_more_and_leaving_restores_the_terminal() -> None:
    frame = staged("data-bound").frame
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as out:
        shown = FirstPicture(out, Look())
        shown.close()
        shown.show(frame)
        shown.leave()
    assert os.read(master, 65536).decode() == ENTER + LEAVE
    os.close(master)


def test_without_colour_it_sends_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = drawn(staged("data-bound").frame, (80, 24), Look())
    assert "38;2" not in text and "dd data 62 dd" in text
