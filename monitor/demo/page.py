"""What a demonstration prints: chapters, sentences, a change of code, and lines that are drawn anew in place.

On a terminal the newest lines may move; in a pipe everything is printed once, when it is final.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from monitor.language import cells, said, word
from monitor.terminal import Terminal, is_attended, plain, ruled, wrapped

WIDEST = 100
"""Columns: longer lines are hard to read."""
INDENT = "  "
TONES = {"+": "healthy", "-": "critical", "@": "dim"}
"""Colours of a change of code, by the sign in front of a line."""


class Page:
    def __init__(self, out: TextIO, *, held: bool = False) -> None:
        self.on = Terminal(out)
        self._out, self._live, self._drawn = out, is_attended(out) and not held, 0
        self._held: list[str] | None = [] if held else None
        """Lines kept back while somebody else has the terminal."""

    @property
    def width(self) -> int:
        return min(WIDEST, self.on.width or WIDEST)

    def write(self, *lines: str) -> None:
        """Below everything so far; lines that were moving are replaced."""
        if self._held is not None:
            self._held += lines
            return
        self._erase()
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()

    def release(self) -> None:
        """Print what was held back."""
        held, self._held = self._held or [], None
        self.write(*held)

    def chapter(self, title: str) -> None:
        self.write("", self.on.paint(ruled(title, self.width), "bold"))

    def say(self, text: str, tone: str = "") -> None:
        """A sentence; none, when there is none."""
        if not text:
            return
        self.write(*(self.on.paint(line, tone) for line in wrapped(plain(text), self.width, INDENT, "")))

    def point(self, name: str, text: str, tone: str = "") -> None:
        """A sentence with a word in front that says what it is."""
        lead = INDENT + cells.left(word(name), 10)
        lines = wrapped(plain(text), self.width, " " * cells.width(lead), "")
        first = self.on.paint(lead, "dim") + self.on.paint(lines[0].lstrip(), tone)
        self.write(first, *(self.on.paint(line, tone) for line in lines[1:]))

    def change(self, lines: Sequence[str]) -> None:
        """A change of code: a line too long for the terminal is cut, with a sign that it was."""
        room = self.width - 2 * len(INDENT)
        for line in lines:
            shown = plain(line) if len(line) <= room else plain(line)[: room - 1] + "…"
            self.write(2 * INDENT + self.on.paint(shown, TONES.get(line[:1], "")))

    def commands(self, rows: Sequence[tuple[str, str]]) -> None:
        """Commands to type, with what each is for: beside it where there is room for all, else below it."""
        wide = max(len(command) for command, _ in rows)
        told = [(command, said(why)) for command, why in rows]
        beside = len(INDENT) + wide + 2 + max(cells.width(why) for _, why in told) <= self.width
        for command, why in told:
            head = INDENT + self.on.paint(command.ljust(wide) if beside else command, "bold")
            self.write(f"{head}  {self.on.paint(why, 'dim')}" if beside else head)
            if not beside:
                self.write(f"{2 * INDENT}{self.on.paint(why, 'dim')}")

    def draw(self, lines: Sequence[str]) -> None:
        """Lines that the next `draw` or `write` replaces; nothing where lines cannot move."""
        if not self._live:
            return
        self._erase()
        self._out.write("".join(f"{line}\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(f"\x1b[{self._drawn}A\x1b[J")
        self._drawn = 0
