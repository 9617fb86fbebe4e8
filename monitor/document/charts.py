"""Charts as SVG whose text stays readable at any width: shapes stretch, words do not.

The outer picture has no view box, so its text is not scaled; the shapes are in an inner picture that fills
the page width. No chart is cut off at the top, and a chart of a share runs from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from monitor.document.markup import Markup, join, tag
from monitor.document.scale import Scale
from monitor.model.since_start import Point

WIDE, HIGH = 1000.0, 100.0
"""Size of the inner picture, in its own units."""
TOP, BELOW = 14, 20
"""Pixels above the plot, and below it for the time labels."""


class Shape(NamedTuple):
    """A drawn shape: path data, class, and tooltip."""

    path: str
    class_: str
    title: str = ""


class Look(NamedTuple):
    """What a reader who points at a part of the time, from `left` to `right` (0 to 1), is told."""

    left: float
    right: float
    text: str


class Note(NamedTuple):
    """A label at a position on the horizontal axis, with a line through the plot."""

    at: float
    text: str
    class_: str = ""


def chart(
    shapes: Iterable[Shape],
    across: Scale,
    up: Scale | None,
    label: str,
    *,
    height: int = 120,
    notes: Sequence[Note] = (),
    looks: Iterable[Look] = (),
    span: tuple[float, float] | None = None,
) -> Markup:
    """The whole picture. With `span`, the seconds of the run it shows, a page can show another."""
    inner = tag(
        "svg",
        (_path(shape) for shape in shapes),
        (_column(look) for look in looks),
        viewBox=f"0 0 {WIDE} {HIGH}",
        preserveAspectRatio="none",
        x=0,
        y=TOP,
        width="100%",
        height=height,
    )
    parts = (_grid(up, height), inner, _numbers(up, height), _marks(across, height), _notes(notes, height))
    begin, end = span or (None, None)
    return tag(
        "svg",
        parts,
        class_="chart",
        width="100%",
        height=TOP + height + BELOW,
        role="img",
        aria_label=label,
        data_from=begin,
        data_to=end,
    )


def _column(look: Look) -> Markup:
    """Invisible, over all shapes: the browser shows its title without a script, a page's script at once."""
    return tag(
        "g",
        tag("title", join((look.text,), str)),
        tag("path", d=block(look.left, look.right, 0.0, 1.0)),
        class_="at",
    )


def _path(shape: Shape) -> Markup:
    title = tag("title", shape.title) if shape.title else None
    if title is None:
        return tag("path", d=shape.path, class_=shape.class_)
    return tag("g", title, tag("path", d=shape.path, class_=shape.class_))


def _grid(up: Scale | None, height: int) -> Markup:
    """Horizontal grid lines, and the base line."""
    places = [_row(height * (1.0 - tick.at)) for tick in (up.ticks if up is not None else ())]
    lines = [tag("line", x1=0, x2="100%", y1=y, y2=y, class_="grid") for y in places]
    return join((*lines, tag("line", x1=0, x2="100%", y1=_row(height), y2=_row(height), class_="ground")))


def _numbers(up: Scale | None, height: int) -> Markup:
    """Each number sits above the left end of its grid line, drawn over the data."""
    ticks = up.ticks if up is not None else ()
    return join(
        tag("text", tick.text, x=2, y=_row(height * (1.0 - tick.at) - 3), class_="mark") for tick in ticks
    )


def _row(below_top: float) -> float:
    return round(TOP + below_top, 1)


def _marks(across: Scale, height: int) -> Markup:
    return join(
        tag(
            "text",
            tick.text,
            x=_percent(tick.at),
            y=TOP + height + 15,
            class_="mark",
            text_anchor=_anchor(tick.at),
        )
        for tick in across.ticks
    )


def _notes(notes: Sequence[Note], height: int) -> Markup:
    parts = []
    for note in notes:
        x = _percent(note.at)
        parts.append(tag("line", x1=x, x2=x, y1=TOP, y2=TOP + height, class_=f"note {note.class_}"))
        parts.append(tag("text", note.text, x=x, y=10, class_="mark", text_anchor=_anchor(note.at)))
    return join(parts)


def _anchor(at: float) -> str:
    return "start" if at < 0.06 else "end" if at > 0.94 else "middle"


def _percent(part: float) -> str:
    return f"{_short(part * 100.0)}%"


def _short(value: float) -> str:
    """A coordinate with at most two decimals."""
    text = str(round(value, 2))
    return text.removesuffix(".0")


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────────


def block(left: float, right: float, low: float, high: float) -> str:
    """A rectangle; coordinates run from 0 to 1."""
    x, x2, y, y2 = left * WIDE, right * WIDE, (1.0 - low) * HIGH, (1.0 - high) * HIGH
    return f"M{_short(x)} {_short(y)}H{_short(x2)}V{_short(y2)}H{_short(x)}Z"


def line(points: Sequence[Point], across: Scale, up: Scale) -> str:
    """A line that breaks where a value is missing."""
    return "".join(
        "M"
        + "L".join(f"{_short(across.place(x) * WIDE)} {_short((1.0 - up.place(y)) * HIGH)}" for x, y in run)
        for run in _unbroken(points)
    )


def area(points: Sequence[Point], across: Scale, up: Scale, lower: Sequence[Point] = ()) -> str:
    """The area below a line; with `lower`, the area between the two."""
    path = ""
    floors = dict(lower)
    for run in _unbroken(points):
        back = (
            [(x, floors.get(x) or 0.0) for x, _ in reversed(run)]
            if lower
            else [(run[-1][0], up.first), (run[0][0], up.first)]
        )
        corners = [
            f"{_short(across.place(x) * WIDE)} {_short((1.0 - up.place(y)) * HIGH)}" for x, y in (*run, *back)
        ]
        path += "M" + "L".join(corners) + "Z"
    return path


def _unbroken(points: Sequence[Point]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if len(run) > 1]


# ── Bars of a table ──────────────────────────────────────────────────────────────────────────────


def strip(parts: Iterable[tuple[float, str, str]], label: str, height: int = 28) -> Markup:
    """One bar with all parts side by side: (share, class, tooltip)."""
    left, blocks = 0.0, []
    for share, class_, title in parts:
        place, wide = _percent(left), _percent(share)
        rect = tag("rect", x=place, y=0, width=wide, height=height, class_=class_)
        blocks.append(tag("g", tag("title", title), rect))
        left += share
    return tag("svg", blocks, class_="strip", width="100%", height=height, role="img", aria_label=label)


def bar(share: float, class_: str) -> Markup:
    """A share of the row's width, over an empty track."""
    full = tag("rect", x=0, y=0, width="100%", height=10, class_="track", rx=2)
    part = tag("rect", x=0, y=0, width=_percent(min(1.0, share)), height=10, class_=class_, rx=2)
    return tag("svg", full, part, class_="bar", width="100%", height=10, aria_hidden="true")


def ranged(
    low: float, likely: float, high: float, realised: float | None, text: Callable[[float], str]
) -> Markup:
    """A predicted range with its likely value and the realised gain, on a scale from no gain to slightly
    above the largest value."""
    top = max(high, realised or 1.0, 1.05) * 1.05
    place = [_percent((max(1.0, one) - 1.0) / (top - 1.0)) for one in (low, likely, high, realised or 1.0)]
    wide = _percent((max(high, 1.0) - max(low, 1.0)) / (top - 1.0))
    parts = [
        tag("rect", x=0, y=8, width="100%", height=6, class_="track", rx=3),
        tag("rect", x=place[0], y=8, width=wide, height=6, class_="range", rx=3),
        tag("line", x1=place[1], x2=place[1], y1=4, y2=18, class_="likely"),
    ]
    if realised is not None:
        parts.append(tag("line", x1=place[3], x2=place[3], y1=2, y2=20, class_="realised"))
    label = f"predicted {text(low)} to {text(high)}"
    return tag("svg", parts, class_="gain", width="100%", height=22, role="img", aria_label=label)
