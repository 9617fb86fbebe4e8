"""The moving picture of the README: what a terminal showed becomes lines with a time of their own."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from docs.tools.demo_picture.svg import animated
from docs.tools.demo_picture.transcript import Piece, Transcript


def recorded() -> Transcript:
    transcript = Transcript("/tmp/private")
    transcript.feed("\x1b[1mtitle\x1b[0m\r\n", 0.0)
    transcript.feed("moving 1\n", 0.5)
    transcript.feed("\x1b[1A\x1b[Jmoving 2\n", 20.0)
    transcript.feed("\x1b[1A\x1b[J\x1b[32m<done>\x1b[0m in /tmp/private/report.html\n", 21.0)
    return transcript


def test_lines_that_were_replaced_are_gone() -> None:
    shown = recorded().moments[-1][1]
    assert shown[0] == (Piece("title", "1"),)
    assert shown[1] == (Piece("<done>", "32"), Piece(" in ./report.html", ""))


def test_the_picture_is_sound_and_waiting_is_short() -> None:
    text = animated(recorded(), 80)
    root = ET.fromstring(text)
    words = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"title", "moving 1", "moving 2", "<done> in ./report.html"} <= set(words)
    seconds = float(text.split("animation:k0 ")[1].split("s")[0])
    assert seconds < 21.0
