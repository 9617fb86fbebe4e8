"""The fallback for terminals without Unicode: one ASCII character for every glyph we draw.

One to one, so columns stay aligned; applied last, so no view needs to know about it.
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
    """Braille cells by the number of their dots."""
    return {0x2800 + bits: STEPS[bits.bit_count()] for bits in range(256)}


TABLE: dict[int, str] = _braille() | {ord(glyph): plain for glyph, plain in PAIRS.items()}


def plain(text: str) -> str:
    """`text` in ASCII; characters without a replacement become "?"."""
    if text.isascii() and text.isprintable():
        return text
    return safe(text).translate(TABLE).encode("ascii", "replace").decode("ascii")


SIMPLE = frozenset(("linux", "vt100", "vt220", "ansi", "cons25"))
"""Terminals without braille in their fonts and with at most sixteen colours, such as the Linux console."""


def theme() -> str | None:
    """The theme for a terminal with only sixteen colours; None: the user's choice."""
    return "ansi-dark" if os.environ.get("TERM") in SIMPLE else None


def wanted() -> bool:
    """Whether the terminal's encoding or font cannot show our glyphs."""
    if os.environ.get("TERM") in SIMPLE:
        return True
    try:
        return codecs.lookup(locale.getencoding()).name != "utf-8"
    except LookupError:
        return True
