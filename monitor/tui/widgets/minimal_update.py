"""Sends only the cells that differ from what the terminal shows, for slow links.

Textual rewrites a changed range from the start of its widget's line, and every segment with its full style.
For a screen of many small figures that is many times the bytes. Here every cell sent is remembered, and an
update sends only the cells that differ, grouped by style.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

from monitor.tui.codes import Codes, change, codes, of_blank

SYSTEMS = {
    None: None,
    "standard": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
    "windows": ColorSystem.WINDOWS,
}
NEAR = 3
"""Up to this many unchanged cells between two differences are sent again: a cursor move is longer."""


class Piece(NamedTuple):
    """Text for a position on the screen, split by style."""

    y: int
    x: int
    strip: Strip


class Stretch(NamedTuple):
    """Text in one style that has to be sent."""

    y: int
    x: int
    text: str


class Shown:
    """What the terminal shows, cell by cell."""

    def __init__(self) -> None:
        self._cells: dict[int, dict[int, tuple[str, Codes]]] = {}

    def forget(self) -> None:
        """The terminal may show anything now: send the next updates in full."""
        self._cells.clear()

    def paint(self, pieces: Iterable[Piece], system: ColorSystem | None) -> str:
        """What to write to make the terminal show the pieces; ends in the terminal's default style."""
        changed: dict[Codes, list[Stretch]] = {}
        for y, x, strip in pieces:
            row = self._cells.setdefault(y, {})
            for segment in strip:
                if segment.control or not segment.text:
                    continue
                wanted = codes(segment.style, system)
                for stretch in _differing(row, y, x, segment.text, wanted):
                    changed.setdefault(wanted, []).append(stretch)
                x += cell_len(segment.text)
        return _written(changed)


def _differing(
    row: dict[int, tuple[str, Codes]], y: int, x: int, text: str, wanted: Codes
) -> Iterator[Stretch]:
    """The parts of a text that the row does not show yet; updates the row."""
    if not text.isascii() and cell_len(text) != len(text):
        yield from _wide(row, y, x, text, wanted)
        return
    blank = (" ", of_blank(wanted))
    near = NEAR if text.isascii() else 1
    first = last = -1
    for at, char in enumerate(text):
        cell = blank if char == " " else (char, wanted)
        if row.get(x + at) != cell:
            row[x + at] = cell
            if first >= 0 and at - last > near + 1:
                yield Stretch(y, x + first, text[first : last + 1])
                first = at
            first, last = (at if first < 0 else first), at
    if first >= 0:
        yield Stretch(y, x + first, text[first : last + 1])


def _wide(row: dict[int, tuple[str, Codes]], y: int, x: int, text: str, wanted: Codes) -> Iterator[Stretch]:
    """Text with zero-width or double-width characters is sent whole or not at all."""
    new = {x + at: (text if at == 0 else "", wanted) for at in range(cell_len(text))}
    if any(row.get(at) != cell for at, cell in new.items()):
        row.update(new)
        yield Stretch(y, x, text)


def _written(changed: dict[Codes, list[Stretch]]) -> str:
    out: list[str] = []
    state, place = Codes(), (-1, -1)
    for wanted, stretches in sorted(changed.items(), key=lambda item: item[0][::-1]):
        out.append(change(state, wanted))
        state = wanted
        for y, x, text in stretches:
            out += [_move(place, (y, x)), text]
            place = (y, x + cell_len(text))
    return "".join([*out, "\x1b[0m"]) if out else ""


def _move(place: tuple[int, int], to: tuple[int, int]) -> str:
    if place == to:
        return ""
    if place[0] == to[0] and to[1] > place[1]:
        return f"\x1b[{to[1] - place[1]}C"
    return f"\x1b[{to[0] + 1};{to[1] + 1}H"


class MinimalUpdate(CompositorUpdate):
    """The same update in fewer bytes."""

    def __init__(self, update: ChopsUpdate | LayoutUpdate, shown: Shown) -> None:
        self._update, self._shown = update, shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        return self._update.__rich_console__(console, options)

    def render_segments(self, console: Console) -> str:
        pieces = _chops(self._update) if isinstance(self._update, ChopsUpdate) else _layout(self._update)
        return self._shown.paint(pieces, SYSTEMS.get(console.color_system))


def _chops(update: ChopsUpdate) -> Iterator[Piece]:
    for y, start, end in update.spans:
        for stop, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is None or x >= end or stop <= start:
                continue
            left = max(x, start)
            yield Piece(y, left, strip.crop(left - x, min(stop, end) - x))


def _layout(update: LayoutUpdate) -> Iterator[Piece]:
    for y, strips in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in strips:
            yield Piece(y, x, strip)
            x += strip.cell_length
