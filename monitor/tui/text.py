"""Lines of styled spans: what views return and panels draw.

A span names a *role* ("good", "alarm", "phase.data"), never a colour: the theme decides, and tests
read lines as text. Lines compare by value, so a panel repaints only what changed.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from monitor.language import said, word
from monitor.language.cells import TIED, pieces
from monitor.terminal import UNITS


class Span(NamedTuple):
    text: str
    role: str = ""


class Slot(NamedTuple):
    """A selectable part of a line, and the key of what it shows."""

    start: int
    end: int
    key: Hashable


@dataclass(frozen=True, slots=True)
class Room:
    """How much room a view has, and whether it must do without colour."""

    width: int
    height: int
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    spans: tuple[Span, ...] = ()
    slots: tuple[Slot, ...] = ()

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)

    def dimmed(self) -> Line:
        """The same line, drawn as no longer current."""
        return replace(self, spans=tuple(Span(text, "stale") for text, _ in self.spans))


WORTH_CUTTING = 0.7
"""Share of a text that must be left for a cut between words."""
NEAR = 6
"""Differences closer than this are sent as one: a cursor move takes about as many bytes."""


def differences(before: Line, after: Line) -> list[tuple[int, int]]:
    """The ranges (start, end) in which two lines differ, in whole spans; the whole line if widths changed."""
    if len(before.spans) != len(after.spans):
        return [(0, max(width_of(before.spans), width_of(after.spans)))]
    out: list[tuple[int, int]] = []
    x = 0
    for old, new in zip(before.spans, after.spans, strict=True):
        end = x + cells(new.text)
        if old != new:
            if end != x + cells(old.text):
                return [(0, max(width_of(before.spans), width_of(after.spans)))]
            if out and x - out[-1][1] <= NEAR:
                out[-1] = (out[-1][0], end)
            else:
                out.append((x, end))
        x = end
    return out


@dataclass(frozen=True, slots=True)
class Block:
    """A panel's content: lines that stay at the top, and lines that scroll."""

    head: tuple[Line, ...] = ()
    rows: tuple[Line, ...] = ()


Cell = str | Span | Sequence[Span]


def spans(cell: Cell, role: str = "") -> tuple[Span, ...]:
    """Whatever a view puts into a cell, as spans that are safe to print."""
    if isinstance(cell, str):
        return (Span(safe(said(cell)), role),)
    if isinstance(cell, Span):
        return (_shown(cell),)
    return tuple([_shown(span) for span in cell])


def _shown(span: Span) -> Span:
    """In the reader's language; the head of a column or graph may be a single word."""
    text, role = span
    told = word(text) if role == "head" else said(text)
    return span if told is text and text.isprintable() else Span(safe(told), role)


def safe(text: str) -> str:
    """Removes control characters: names and command lines come from other people's processes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def width_of(cell: Iterable[Span]) -> int:
    return sum([cells(text) for text, _ in cell])


def cells(text: str) -> int:
    """How many cells a text takes; most texts are ASCII and need no table."""
    return len(text) if text.isascii() else cell_len(text)


def clip(text: str, width: int) -> str:
    """`text` in at most `width` cells, with an ellipsis if something is cut, if possible between words."""
    text = said(text)
    if cell_len(text) <= width:
        return text
    bare = text.rstrip()
    if cell_len(bare) <= width:
        return bare
    return _whole_words(set_cell_size(text, width - 1).rstrip(), text) + "…" if width > 0 else ""


def _whole_words(kept: str, text: str) -> str:
    """Without the beginning of the word that was cut, unless that is a good part of the text."""
    if text[len(kept) : len(kept) + 1].isspace():
        return kept
    words = kept.rpartition(" ")[0].rstrip(" ,;:(·—")
    return words if len(words) >= WORTH_CUTTING * len(kept) else kept


def fit(cell: Cell, width: int, align: str = "<") -> list[Span]:
    """A cell, padded or cut to exactly `width`."""
    parts = list(spans(cell))
    extent = cells(parts[0].text) if len(parts) == 1 else width_of(parts)
    if extent == width:
        return parts
    if extent > width:
        return _cut(parts, width)
    blank = Span(" " * (width - extent))
    return [blank, *parts] if align == ">" else [*parts, blank]


def _cut(parts: list[Span], width: int) -> list[Span]:
    out: list[Span] = []
    left = width
    for index, (text, role) in enumerate(parts):
        extent = cell_len(text)
        more = any(span.text.strip() for span in parts[index + 1 :])
        if extent < left or (extent == left and not more):
            out.append(Span(text, role))
            left -= extent
            continue
        shown = clip(text if extent > left else text + " ", left)
        out.append(Span(shown + " " * (left - cell_len(shown)), role))
        break
    return out


def line(*cells: Cell, width: int | None = None, key: Hashable = None) -> Line:
    """One line from consecutive cells; with `width`, cut or padded to it."""
    parts = [span for cell in cells for span in spans(cell)]
    if width is not None:
        parts = fit(parts, width)
    extent = width_of(parts) if width is None else width
    return Line(tuple(parts), (Slot(0, extent, key),) if key is not None else ())


def beside(blocks: Sequence[Sequence[Line]], widths: Sequence[int], gap: int = 2) -> list[Line]:
    """Columns of lines side by side; their slots move with them."""
    height = max((len(block) for block in blocks), default=0)
    return [
        _join([block[y] if y < len(block) else Line() for block in blocks], widths, gap)
        for y in range(height)
    ]


def _join(parts: Sequence[Line], widths: Sequence[int], gap: int) -> Line:
    out: list[Span] = []
    slots: list[Slot] = []
    x = 0
    for index, (part, width) in enumerate(zip(parts, widths, strict=True)):
        last = index == len(parts) - 1
        slots += [Slot(x + s.start, min(x + s.end, x + width), s.key) for s in part.slots]
        out += fit(part.spans, width)
        if not last:
            out.append(Span(" " * gap))
        x += width + gap
    return Line(tuple(out), tuple(slots))


def shares(width: int, count: int, gap: int = 1) -> list[int]:
    """Widths of `count` columns that fill `width` with `gap` blanks between them."""
    whole, more = divmod(width - gap * (count - 1), count)
    return [whole + (at < more) for at in range(count)]


def wrap(text: str, width: int) -> list[str]:
    """Text wrapped to at most `width` cells; a word longer than a line is split."""
    lines = [
        joined.rstrip() for joined in map(_text_of, wrap_spans([Span(said(" ".join(text.split())))], width))
    ]
    return lines or [""]


def _text_of(parts: Iterable[Span]) -> str:
    return "".join(span.text for span in parts)


def wrap_spans(parts: Iterable[Span], width: int, hang: int = 0) -> list[list[Span]]:
    """Spans wrapped between words to at most `width` cells; `hang` indents all lines but the first."""
    lines: list[list[Span]] = []
    left = 0
    for text, role in parts:
        for piece in _pieces(said(text), max(1, width - hang)):
            if lines and cells(piece.rstrip()) <= left:
                lines[-1].append(Span(piece, role))
            else:
                indent = [Span(" " * hang)] if lines and hang else []
                piece = piece.lstrip() if lines else piece
                lines.append([*indent, Span(piece, role)])
                left = width - (hang if indent else 0)
            left -= cells(piece)
    return [_joined([*made[:-1], Span(made[-1].text.rstrip(), made[-1].role)]) for made in lines]


WORD = re.compile(rf"\s*\S+(?:(?:{UNITS})\S+)*\s*|\s+")
"""A number and its unit are one word."""


def _pieces(text: str, width: int) -> Iterator[str]:
    """Words with the blanks after them; a word longer than a line is split."""
    for piece in _words(safe(text)):
        while cells(piece.rstrip()) > width:
            fits = set_cell_size(piece, width)
            yield fits
            piece = piece[len(fits) :]
        yield piece


def _words(text: str) -> Iterable[str]:
    """Between Chinese characters a line may break anywhere."""
    if cells(text) == len(text):
        return WORD.findall(text)
    return (piece.replace(TIED, " ") for piece in pieces(re.sub(UNITS, TIED, text)))


def _joined(parts: Iterable[Span]) -> list[Span]:
    """Merges adjacent spans with the same role."""
    out: list[Span] = []
    for span in parts:
        if out and out[-1].role == span.role:
            out[-1] = Span(out[-1].text + span.text, span.role)
        else:
            out.append(span)
    return out
