"""Styles as terminal codes, in as few bytes as possible.

Rich caches codes with the style, whatever the terminal can do: two that differ would mix them up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style

ATTRIBUTES = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("blink", "5"),
    ("reverse", "7"),
    ("strike", "9"),
)
OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "7": "27", "9": "29"}
"""Code of an attribute → the code that ends it; bold and dim end together."""
SEEN_ON_BLANKS = frozenset(("4", "7", "9"))
"""Attributes that are visible on a blank."""


class Codes(NamedTuple):
    """A style as terminal codes."""

    attributes: str = ""
    colour: str = "39"
    background: str = "49"


@lru_cache(maxsize=4096)
def codes(style: Style | None, system: ColorSystem | None) -> Codes:
    if style is None:
        return Codes()
    attributes = ";".join(code for name, code in ATTRIBUTES if getattr(style, name))
    if system is None:
        return Codes(attributes)
    colour = ";".join(style.color.downgrade(system).get_ansi_codes(True)) if style.color else "39"
    background = ";".join(style.bgcolor.downgrade(system).get_ansi_codes(False)) if style.bgcolor else "49"
    return Codes(attributes, colour, background)


@lru_cache(maxsize=4096)
def of_blank(wanted: Codes) -> Codes:
    """The visible part of a style on a blank: all blanks on one background look the same."""
    attributes = ";".join(one for one in wanted.attributes.split(";") if one in SEEN_ON_BLANKS)
    return wanted if attributes else Codes("", "39", wanted.background)


def change(before: Codes, after: Codes) -> str:
    """A short code from one style to the next: attributes that end or begin, and changed colours."""
    had, has = set(before.attributes.split(";")), set(after.attributes.split(";"))
    ends = {OFF[one] for one in had - has if one}
    begins = [one for one in after.attributes.split(";") if one and (one not in had or OFF[one] in ends)]
    colours = [new for old, new in zip(before[1:], after[1:], strict=True) if old != new]
    parts = [*sorted(ends), *begins, *colours]
    return f"\x1b[{';'.join(parts)}m" if parts else ""
