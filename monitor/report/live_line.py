"""The line `gpumon run` keeps at the bottom of a terminal while the command runs above it.

It tells the terminal to scroll all rows but the last, as a package manager does for its progress bar, so the
command's output is never touched. Unless standard error and input are both terminals, there is no line.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from monitor.language import cells, said, word
from monitor.model.run import Run
from monitor.model.units import duration, number, percent, visible, whole
from monitor.terminal import Terminal, plain

LEAST_ROWS = 6
PHASES_SHOWN = 3
WATCH = "gpumon tui to watch"
GAP = "  "


class LiveLine:
    """Drawn by one thread; `close` restores the terminal."""

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._on = Terminal(out)
        self._rows = 0
        """Height of the terminal when its last row was taken; 0: not taken."""

    def draw(self, run: Run | None) -> None:
        size = shutil.get_terminal_size()
        if size.lines < LEAST_ROWS or run is None or not run.steps:
            return
        text = plain(line(run, size.columns - 1))
        taken = "" if size.lines == self._rows else self._take(size.lines)
        self._rows = size.lines
        bar = self._on.paint(cells.left(text, size.columns - 1), "bar") if self._on.colored else text
        self._write(f"{taken}\x1b7\x1b[{size.lines};1H\x1b[2K{bar}\x1b8")

    def _take(self, rows: int) -> str:
        """Scroll everything up by one line, then let all rows but the last scroll."""
        return f"\n\x1b[1A\x1b7\x1b[1;{rows - 1}r\x1b8"

    def close(self) -> None:
        """All rows scroll again, the line is removed, and the cursor stays where the command left it."""
        if self._rows:
            self._write(f"\x1b7\x1b[r\x1b[{self._rows};1H\x1b[2K\x1b8")
            self._rows = 0

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError):
            self._rows = 0


def line(run: Run, width: int) -> str:
    """Steps, rate, where the time goes, how to see more, the cause; shorter where that does not fit."""
    shorter = [[*map(said, _parts(run, phases))] for phases in range(PHASES_SHOWN, 0, -1)]
    texts = map(_joined, ([*shorter[0], *map(said, _cause(run))], *shorter))
    return next((text for text in texts if cells.width(text) <= width), _fitting(shorter[-1], width))


def _joined(parts: Iterable[str]) -> str:
    return GAP.join(("gpumon", *parts))


def _fitting(parts: Iterable[str], width: int) -> str:
    """As many as there is room for, from the first."""
    kept: list[str] = []
    for part in parts:
        if cells.width(_joined((*kept, part))) > width:
            break
        kept.append(part)
    return _joined(kept) if kept else ""


def _parts(run: Run, phases: int) -> Iterator[str]:
    if run.state == "stalled" and run.current is not None:
        yield f"no step for {duration(run.current.seconds)}, in {run.current.phase}"
    yield f"{whole(run.steps)} steps"
    if run.iterations_per_second is not None:
        yield f"{number(run.iterations_per_second)} it/s"
    largest = sorted(run.phases, key=lambda phase: -phase.share)[:phases]
    if largest:
        yield ", ".join(f"{word(one.name)} {percent(one.share)}" for one in largest if visible(one.share))
    yield WATCH


def _cause(run: Run) -> Iterator[str]:
    if run.verdict is not None and run.verdict.kind == "fix":
        yield run.verdict.headline
