"""Text for a terminal or a pipe: colour, width, wrapped lines and the one table used by all commands.

On a terminal, lines fit its width and break between words. In a pipe nothing is wrapped or left out, because
a program reads it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from monitor.language import cells, said, word

NARROWEST = 40
GAP = "  "
UNITS = (
    r"(?<=\d) (?=(?:µs|ms|s|min|h|d|[KMGT]?i?B)\b|%)|(?<=\d min) (?=\d+ s)|(?<=\d h) (?=\d+ min)"
    r"|(?<=\d) (?=\([\d.]+–)"
)
"""The blank between a number and its unit, and within "10 min 03 s" and "×2.1 (1.7–2.4)"."""
NAMES = frozenset(("run", "name", "user", "command", "script", "host", "node", "knob", "takes", "rule"))
"""Columns of other people's words, which are never translated."""
COLORS = {
    "critical": "31;1", "warning": "33;1", "hint": "36", "healthy": "32;1",
    "running": "32", "stalled": "31;1", "failed": "31", "killed": "31",
    "dim": "2", "bold": "1", "bar": "7",
}  # fmt: skip
"""Keyed by meaning, not by colour: a severity, a run state, or an emphasis."""


class Terminal:
    """What a stream can show."""

    def __init__(self, out: TextIO | None) -> None:
        self.tty = out is not None and out.isatty()
        forced = os.environ.get("FORCE_COLOR", "") not in ("", "0")
        self.colored = (self.tty or forced) and not os.environ.get("NO_COLOR")
        encoding = (getattr(out, "encoding", None) or "utf-8").lower()
        rich = encoding.startswith("utf")
        self.block, self.blank = ("█", "·") if rich else ("#", ".")
        self.left, self.dash, self.dot, self.right = "├─●┤" if rich else "|-o|"

    @property
    def width(self) -> int | None:
        """Columns; None if lines may have any length."""
        return max(NARROWEST, shutil.get_terminal_size().columns) if self.tty else None

    def paint(self, text: str, tone: str) -> str:
        color = COLORS.get(tone, "")
        return f"\x1b[{color}m{text}\x1b[0m" if self.colored and color and text else text


def is_attended(out: TextIO) -> bool:
    """Whether somebody is at the terminal, and it can move its cursor."""
    typed = sys.stdin is not None and sys.stdin.isatty()
    return out.isatty() and typed and os.environ.get("TERM", "dumb") not in ("dumb", "")


PLAIN = Terminal(None)


def plain(text: str) -> str:
    """One line of printable text: names come from other users' files and may contain anything."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def ruled(text: str, width: int) -> str:
    """A heading with a line to the edge."""
    text = said(text)
    return f"── {text} " + "─" * max(0, width - cells.width(text) - 4)


def wrapped(text: str, width: int | None, indent: str = "", hang: str = "  ") -> list[str]:
    """Lines of at most this width; a number stays with its unit, and words are never broken."""
    text = said(text)
    if width is None:
        return [indent + text]
    lines = cells.wrap(re.sub(UNITS, cells.TIED, text), width, indent, indent + hang)
    return [line.replace(cells.TIED, " ") for line in lines] or [indent]


def code(text: str, width: int | None, indent: str) -> Iterator[str]:
    """Lines of a change. One that is too long goes on in the next, with its sign and further in."""
    for line in text.splitlines():
        if width is None or len(indent + line) <= width:
            yield indent + line
            continue
        sign = line[: len(line) - len(line.lstrip("+- "))]
        yield from textwrap.wrap(
            line, width, initial_indent=indent, subsequent_indent=f"{indent}{sign}    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip


def hints(entries: Sequence[tuple[str, str]], width: int | None, on: Terminal = PLAIN) -> Iterator[str]:
    """Commands, and beside them what they are for; below them if there is no room beside."""
    entries = [(command, said(why)) for command, why in entries]
    longest = max(len(command) for command, _ in entries) + len(GAP)
    beside = width is None or longest + max(cells.width(why) for _, why in entries) <= width
    for command, why in entries:
        shown = on.paint(command, "bold")
        if beside:
            yield shown + " " * (longest - len(command)) + on.paint(why, "dim")
        else:
            yield shown
            yield from (on.paint(line, "dim") for line in wrapped(why, width, GAP * 2))


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    below: int | None = None,
    spare: Sequence[int] = (),
    tones: Sequence[str] = (),
    on: Terminal = PLAIN,
) -> str:
    """Columns as wide as needed. If that exceeds the terminal's width, column `below` moves below its row,
    then the columns in `spare` are dropped, in order; one that no row fills is not there at all. `tones` are
    the colours of the rows."""
    head, rows = _spoken(head, rows)
    shown = [at for at in range(len(head)) if at not in spare or any(_says(row[at]) for row in rows)]
    under = None
    for drop in (below, *spare):
        if on.width is None or _wide(head, rows, shown) <= on.width:
            break
        if drop in shown:
            shown.remove(drop)
            under = below
    lines = [on.paint(_line(head, _widths(head, rows, shown), shown, right), "dim")]
    for at, row in enumerate(rows):
        tone = tones[at] if at < len(tones) else ""
        lines.append(on.paint(_line(row, _widths(head, rows, shown), shown, right), tone))
        lines += _below(row, under, on)
    return "\n".join(lines)


def _spoken(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """In the reader's language, except for names."""
    own = [title.lower() in NAMES for title in head]
    told = [[text if is_name else word(text) for text, is_name in zip(row, own, strict=True)] for row in rows]
    return [word(title) for title in head], told


def _says(text: str) -> bool:
    from sdk.units import ABSENT  # `gpumon run` begins where the user may have an `sdk` of their own

    return text.strip() not in ("", ABSENT)


def _below(row: Sequence[str], under: int | None, on: Terminal) -> Iterator[str]:
    if under is not None and row[under]:
        yield from (on.paint(line, "dim") for line in wrapped(plain(row[under]), on.width, GAP))


def _widths(head: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> dict[int, int]:
    return {at: max(cells.width(plain(row[at])) for row in (head, *rows)) for at in shown}


def _wide(head: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    return sum(_widths(head, rows, shown).values()) + len(GAP) * (len(shown) - 1)


def _line(row: Sequence[str], widths: dict[int, int], shown: Sequence[int], right: Sequence[int]) -> str:
    padded = ((cells.right if at in right else cells.left)(plain(row[at]), widths[at]) for at in shown)
    return GAP.join(padded).rstrip()
