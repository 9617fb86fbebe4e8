"""The fallback for terminals without Unicode: every glyph we draw, as one ASCII character.

One to one, so columns keep their places; it is applied at the very end, so no view knows of it.
"""

from __future__ import annotations

import codecs
import locale

from monitor.tui.text import safe

STEPS = " .:-=+*##"

PAIRS = {
    "—": "-", "–": "-", "…": "~", "·": ".", "×": "x", "→": ">", "°": "C", "µ": "u", "≤": "<", "≥": ">",
    "●": "*", "▲": "!", "○": "o", "◆": "#", "✕": "X", "◐": "%", "▸": ">", "▾": "v", "◌": "?", "‖": "=",
    "─": "-", "│": "|", "├": "|", "└": "`", "┬": "+", "┌": "+", "┐": "+", "┘": "+", "┴": "+", "┤": "|",
    "█": "#", "▉": "#", "▊": "#", "▋": "=", "▌": "=", "▍": "-", "▎": "-", "▏": ".", "▶": ">", "◀": "<",
    "✓": "+", "■": "#", "▪": "#", "▁": "_", "↑": "^", "↓": "v", "⇄": "=", "▮": "#", "━": "=", "╸": "=",
    "✗": "x", "▀": "=", "⏎": "<", "▰": "#", "▱": ".", "≈": "~", "−": "-", "±": "~",
    "“": '"', "”": '"', "’": "'",
}  # fmt: skip


def _braille() -> dict[int, str]:
    """A braille cell by how many of its dots are set."""
    return {0x2800 + bits: STEPS[bits.bit_count()] for bits in range(256)}


TABLE: dict[int, str] = _braille() | {ord(glyph): plain for glyph, plain in PAIRS.items()}


def plain(text: str) -> str:
    """`text` in ASCII; what has no stand-in becomes "?"."""
    if text.isascii() and text.isprintable():
        return text
    return safe(text).translate(TABLE).encode("ascii", "replace").decode("ascii")


def wanted() -> bool:
    """True when the terminal's encoding cannot show our glyphs."""
    try:
        return codecs.lookup(locale.getencoding()).name != "utf-8"
    except LookupError:
        return True
