"""Aligned columns; each has a width and a priority that decides which columns are dropped first."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from monitor.language import word
from monitor.model import units
from monitor.tui.text import Cell, Line, Slot, Span, cells, fit, spans


@dataclass(frozen=True, slots=True)
class Column:
    """`drop` 0 always stays; the highest is dropped first. `grow` is a share of the remaining room."""

    name: str
    title: str
    width: int
    align: str = "<"
    drop: int = 0
    grow: int = 0
    most: int = 400
    short: str = ""
    """The title where there is not room for it."""


def chosen(columns: Sequence[Column], width: int, gap: int = 2) -> dict[str, tuple[Column, int]]:
    """The columns that fit, with their widths; growing ones share what is left."""
    kept = list(columns)
    while _needed(kept, gap) > width and any(column.drop for column in kept):
        kept.remove(max(reversed(kept), key=lambda column: column.drop))
    widths = {column.name: column.width for column in kept}
    spare = width - _needed(kept, gap)
    growing = [column for column in kept if column.grow]
    while spare > 0 and growing:
        total = sum(column.grow for column in growing)
        taken = 0
        for column in growing:
            extra = min(
                max(1, spare * column.grow // total), column.most - widths[column.name], spare - taken
            )
            widths[column.name] += extra
            taken += extra
        spare -= taken
        growing = [column for column in growing if widths[column.name] < column.most]
        if not taken:
            break
    if spare < 0:
        widest = max(kept, key=lambda column: widths[column.name])
        widths[widest.name] = max(1, widths[widest.name] + spare)
    return {column.name: (column, widths[column.name]) for column in kept}


def occupied(columns: Sequence[Column], rows: Sequence[Mapping[str, Cell]]) -> list[Column]:
    """The columns that at least one row fills; all of them if there are no rows."""
    return [
        column
        for column in columns
        if not rows or any(column.name not in cells or says(cells[column.name]) for cells in rows)
    ]


def says(cell: Cell) -> bool:
    """Whether a cell shows anything."""
    return "".join(text for text, _ in spans(cell)).strip() not in ("", units.ABSENT)


def _needed(columns: Sequence[Column], gap: int) -> int:
    return sum(column.width for column in columns) + gap * max(0, len(columns) - 1)


def gap_for(width: int) -> int:
    """Blanks between columns: one if room is short."""
    return 1 if width < 100 else 2


Layout = dict[str, tuple[Column, int]]


def heading(
    layout: Layout, *, sort: str | None = None, reverse: bool = False, gap: int = 2, lead: int = 0
) -> Line:
    """The titles; the first is the table's own name. A sorted column shows its direction."""
    out: list[Span] = [Span(" " * lead)] if lead else []
    slots: list[Slot] = []
    x = lead
    for index, (column, width) in enumerate(layout.values()):
        arrow = ("↓" if reverse else "↑") if column.name == sort else ""
        role = "title" if index == 0 else "strong" if arrow else "head"
        title = word(column.title) + arrow
        if column.short and cells(title) > width:
            title = word(column.short) + arrow
        out += [*fit(Span(title, role), width, column.align), Span(" " * gap)]
        slots.append(Slot(x, x + width, ("sort", column.name)))
        x += width + gap
    return Line(tuple(out), tuple(slots))


def row(
    layout: Layout, cells: Mapping[str, Cell], *, key: Hashable = None, gap: int = 2, lead: Cell = ""
) -> Line:
    """One row; columns without room are omitted, columns without a cell are blank."""
    out: list[Span] = list(spans(lead)) if lead else []
    space = Span(" " * gap)
    for column, width in layout.values():
        out += fit(cells.get(column.name, ""), width, column.align)
        out.append(space)
    if key is None:
        return Line(tuple(out))
    extent = len(out[0].text if lead else "") + sum([width + gap for _, width in layout.values()])
    return Line(tuple(out), (Slot(0, extent, key),))
