"""Bars that grow while runs train, and ranges on one scale: drawn as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from monitor.language import said, word
from monitor.language.cells import left
from monitor.language.cells import width as width_of
from monitor.model.units import filled, gain_range, number
from monitor.terminal import Terminal

LABEL, FIGURES = 24, 18
HEADROOM = 5.0
"""How many times as fast as the first run a bar may become before the scale is drawn anew. Judgement."""
NARROWEST = 8


@dataclass(slots=True)
class Lane:
    """One run of the race."""

    label: str
    rate: float = 0.0
    """Samples a second, as far as known."""
    done: float = 0.0
    """Share of its steps."""

    @property
    def over(self) -> bool:
        return self.done >= 1.0


class Race:
    """One bar a run, as long as its samples a second are many; it grows with the steps that are done."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.lanes = [Lane(label) for label in labels]

    def lines(self, on: Terminal, width: int) -> list[str]:
        cells = max(NARROWEST, width - LABEL - FIGURES - 2)
        first, best = self.lanes[0].rate, max(lane.rate for lane in self.lanes)
        scale = best if all(lane.over for lane in self.lanes) else max(best, HEADROOM * first)
        return [self._line(lane, scale, cells, on) for lane in self.lanes]

    def _line(self, lane: Lane, scale: float, cells: int, on: Terminal) -> str:
        share = lane.rate / scale * min(1.0, lane.done) if scale else 0.0
        full = filled(share, cells) if share else 0
        tone = "running" if lane is not self.lanes[0] else "warning"
        bar = on.paint(on.block * full, tone) + on.paint(on.blank * (cells - full), "dim")
        rate = said(f"{number(lane.rate)} samples/s") if lane.rate else ""
        return f"  {left(word(lane.label), LABEL)}{bar} {rate}".rstrip()


Range = tuple[float, float, float]
"""Low, likely, high."""


def ranges(rows: Sequence[tuple[str, Range]], on: Terminal, width: int) -> list[str]:
    """Ratios with their ranges, each at its place on one scale that begins at ×1."""
    texts = [gain_range(*span) for _, span in rows]
    rows = [(word(name), span) for name, span in rows]
    names = max(width_of(name) for name, _ in rows)
    cells = max(NARROWEST, width - names - max(map(len, texts)) - 8)
    top = max(span[2] for _, span in rows)
    wide = max(map(len, texts))
    return [
        f"  {left(name, names)}  {on.paint(text.ljust(wide), 'bold')}  {_span(span, top, cells, on)}"
        for (name, span), text in zip(rows, texts, strict=True)
    ]


def _span(span: Range, top: float, cells: int, on: Terminal) -> str:
    """`··├──●──┤··`."""
    places = [round((value - 1.0) / (top - 1.0 or 1.0) * (cells - 1)) for value in span]
    low, likely, high = (min(cells - 1, max(0, place)) for place in places)
    line = [on.blank] * cells
    line[low : high + 1] = [on.dash] * (high - low + 1)
    line[low], line[high], line[likely] = on.left, on.right, on.dot
    return "".join(line)
