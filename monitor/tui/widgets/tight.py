"""Sends only the changed cells, with only the colour codes that change: the screen over a thin line.

Textual writes a changed stretch from the begin of its widget's line, and every segment with its whole
style. For a screen of many small figures that is ten times the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate

SYSTEMS = {
    None: None,
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
ATTRIBUTES = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("reverse", "7"),
    ("strike", "9"),
)


class Codes(NamedTuple):
    """A style as the terminal takes it."""

    attributes: str = ""
    colour: str = "39"
    ground: str = "49"


@lru_cache(maxsize=4096)
def codes(style: Style | None, system: ColorSystem | None) -> Codes:
    if style is None:
        return Codes()
    attributes = ";".join(code for name, code in ATTRIBUTES if getattr(style, name))
    if system is None:
        return Codes(attributes)
    colour = ";".join(style.color.downgrade(system).get_ansi_codes(True)) if style.color else "39"
    ground = ";".join(style.bgcolor.downgrade(system).get_ansi_codes(False)) if style.bgcolor else "49"
    return Codes(attributes, colour, ground)


def change(before: Codes, after: Codes) -> str:
    """The shortest way from one style to the next; attributes can only be cleared together."""
    if before == after:
        return ""
    if before.attributes != after.attributes:
        parts = ["0", after.attributes, "" if after.colour == "39" else after.colour]
        parts.append("" if after.ground == "49" else after.ground)
    else:
        parts = [new for old, new in zip(before[1:], after[1:], strict=True) if old != new]
    return f"\x1b[{';'.join(part for part in parts if part)}m"


class TightUpdate(ChopsUpdate):
    """The same picture in fewer bytes."""

    def render_segments(self, console: Console) -> str:
        system = SYSTEMS.get(console.color_system)
        out: list[str] = []
        state = Codes()
        for y, start, end in self.spans:
            for stop, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= end or stop <= start:
                    continue
                left = max(x, start)
                out.append(f"\x1b[{y + 1};{left + 1}H")
                state = _write(strip.crop(left - x, min(stop, end) - x), system, state, out)
        return "".join([*out, "\x1b[0m"])


def _write(segments: Iterable[Segment], system: ColorSystem | None, state: Codes, out: list[str]) -> Codes:
    for segment in segments:
        if segment.control or not segment.text:
            continue
        wanted = codes(segment.style, system)
        out += [change(state, wanted), segment.text]
        state = wanted
    return state
