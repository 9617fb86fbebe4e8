"""Widths in terminal cells: a Chinese character takes two."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from unicodedata import combining, east_asian_width

WIDE = "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]"
NO_START = "，。；：？！、）”’》」…"
TIED = "\N{NO-BREAK SPACE}"
"""A blank at which no line may break, as between a number and its unit."""
TOKENS = rf"{WIDE}[{NO_START}]*|[^\S{TIED}]+|(?:(?!{WIDE})[\S{TIED}])+[{NO_START}]*"


def width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(c) in "WF" else 0 if combining(c) else 1 for c in text)


def left(text: str, cells: int) -> str:
    """Padded on the right."""
    return text + " " * max(0, cells - width(text))


def right(text: str, cells: int) -> str:
    return " " * max(0, cells - width(text)) + text


def wrap(text: str, cells: int, indent: str, hang: str) -> list[str]:
    """Like `textwrap.wrap` without breaking words; between Chinese characters a line may break anywhere, but
    never before a closing mark."""
    if text.isascii() or width(text) == len(text):
        return textwrap.wrap(
            text, cells, initial_indent=indent, subsequent_indent=hang,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    lines, now = [], indent
    for token in pieces(" ".join(text.split(" "))):
        if now.strip() and width(now) + width(token.rstrip()) > cells:
            lines.append(now.rstrip())
            now, token = hang, token.lstrip()
        now += token
    return [*lines, now.rstrip()] if now.strip() else lines


def pieces(text: str) -> Iterator[str]:
    """What stays together on a line, in order."""
    return (match.group() for match in re.finditer(TOKENS, text))
