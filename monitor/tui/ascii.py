"""The fallback for terminals without Unicode: every glyph we draw, as one ASCII character.

One to one, so columns keep their places; it is applied last, so no view knows of it.
"""

from __future__ import annotations

import codecs
import locale
import os

from monitor.tui.text import safe

STEPS = " .:-=+*##"

PAIRS = {
    "—": "-", "–": "-", "…": "~", "·": ".", "×": "x", "→": ">", "°": "C", "µ": "u", "≤": "<", "≥": ">",
    "●": "*", "▲": "!", "○": "o", "◆": "#", "✕": "X", "◐": "%", "▸": ">", "▾": "v", "◌": "?", "‖": "=",
    "─": "-", "│": "|", "├": "|", "└": "`", "┬": "+", "┌": "+", "┐": "+", "┘": "+", "┴": "+", "┤": "|",
    "█": "#", "▉": "#", "▊": "#", "▋": "=", "▌": "=", "▍": "-", "▎": "-", "▏": ".", "▶": ">", "◀": "<",
    "✓": "+", "■": "#", "▪": "#", "▁": "_", "↑": "^", "↓": "v", "⇄": "=", "▮": "#", "━": "=", "╸": "=",
    "✗": "x", "▀": "=", "⏎": "<", "▰": "#", "▱": ".", "≈": "~", "−": "-", "±": "~",
    "╱": "/", "╭": "+", "╮": "+", "╰": "+", "╯": "+", "▂": "_", "▃": "-", "▄": "-", "▅": "=", "▆": "=",
    "▇": "#", "▹": "-",
    "“": '"', "”": '"', "’": "'",
}  # fmt: skip


def _braille() -> dict[int, str]:
    """A braille cell by how many of its dots are set."""
    return {0x2800 + bits: STEPS[bits.bit_count()] for bits in range(256)}


TABLE: dict[int, str] = _braille() | {ord(glyph): plain for glyph, plain in PAIRS.items()}


def plain(text: str) -> str:
    """`text` in ASCII; what has no replacement becomes "?"."""
    if text.isascii() and text.isprintable():
        return text
    return safe(text).translate(TABLE).encode("ascii", "replace").decode("ascii")


SIMPLE = frozenset(("linux", "vt100", "vt220", "ansi", "cons25"))
"""Terminals without braille in their fonts and with sixteen colours at most: the Linux console is one."""


def theme() -> str | None:
    """The theme for a terminal that has sixteen colours and no more; None: the user's choice."""
    return "ansi-dark" if os.environ.get("TERM") in SIMPLE else None


def wanted() -> bool:
    """True when the terminal's encoding or font cannot show our glyphs."""
    if os.environ.get("TERM") in SIMPLE:
        return True
    try:
        return codecs.lookup(locale.getencoding()).name != "utf-8"
    except LookupError:
        return True
