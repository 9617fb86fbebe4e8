"""Charts over a run's own time, all with the same axis, marking the end of the set-up and of the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from monitor.catalog.dossier import Dossier
from monitor.document import charts, scale
from monitor.document.charts import Look, Note, Shape
from monitor.document.markup import Markup
from monitor.language import said, word
from monitor.model.run import Window
from monitor.model.since_start import Point, Stretch
from monitor.model.units import moment, seconds, visible, whole

NAMED_HEIGHT = 100
"""From this height in pixels, a chart has room for words beside its numbers."""


MOST_LOOKS = 80
"""Places to point at in one chart: about six pixels each where two are abreast."""


def across(dossier: Dossier) -> scale.Scale:
    """From the start of the run to its end, or over the part that a close-up shows."""
    begin, end = dossier.span or (0.0, dossier.run.elapsed_seconds)
    return scale.of_time(end - begin, begin)


def timed(
    dossier: Dossier,
    shapes: Iterable[Shape],
    up: scale.Scale,
    label: str,
    *,
    height: int = 120,
    told: Sequence[tuple[float, str]] = (),
) -> Markup:
    """A chart over a run's time; `told` is what a reader who points at a moment is told."""
    axis = across(dossier)
    notes = []
    last = dossier.last_step_seconds
    if dossier.end is not None and last is not None and axis.first <= last <= axis.last:
        words = dossier.end.how if height >= NAMED_HEIGHT else ""
        notes.append(Note(axis.place(last), words, "bad"))
    shades = list(_shades(dossier, axis))
    return charts.chart(
        (*(Shape(charts.block(one.left, one.right, 0.0, 1.0), class_) for class_, one in shades), *shapes),
        axis,
        up,
        label,
        height=height,
        notes=notes,
        looks=(*(one for _, one in shades), *looks(axis, told)),
        span=(axis.first, axis.last),
    )


def _shades(dossier: Dossier, axis: scale.Scale) -> Iterator[tuple[str, Look]]:
    """The time that is in no figure: the set-up, and steps that are not counted."""
    before = axis.place(dossier.run.setup_seconds or 0.0)
    if visible(before):
        yield "before", Look(0.0, before, said("set-up: before the first step"))
    for begin, end in dossier.uncounted:
        told = said("warm-up or sampled steps: not counted")
        yield "uncounted", Look(axis.place(begin), axis.place(end), told)


def looks(axis: scale.Scale, told: Sequence[tuple[float, str]]) -> Iterator[Look]:
    """Each from half-way to its neighbours, but no further than they usually are apart: a gap is silent."""
    if not told:
        return
    told = told[:: math.ceil(len(told) / MOST_LOOKS)]
    at = [axis.place(moment) for moment, _ in told]
    reach = max((at[-1] - at[0]) / (len(at) - 1), 1.0 / charts.WIDE) if len(at) > 1 else 1.0
    edges = [-1.0, *((one + other) / 2.0 for one, other in pairwise(at)), 2.0]
    for place, (_, text), (left, right) in zip(at, told, pairwise(edges), strict=True):
        yield Look(max(0.0, left, place - reach), min(1.0, right, place + reach), text)


def windows_told(
    dossier: Dossier, lines: Callable[[Window], Iterable[tuple[str, str]]]
) -> list[tuple[float, str]]:
    """What each window says: where it is, then a line for each of its (name, figure)."""
    return [
        (
            part.middle,
            "\n".join((_where(part), *(f"{word(name)} {text}" for name, text in lines(part.window)))),
        )
        for part in dossier.stretches
    ]


def _where(part: Stretch) -> str:
    return said(f"{moment(part.middle, part.window.seconds)}, step {whole(part.window.first_step)}")


def points_told(values: Sequence[Point], name: str, text: Callable[[float], str]) -> list[tuple[float, str]]:
    """The same for one figure."""
    return [(at, f"{seconds(at)}\n{word(name)} {text(value)}") for at, value in values if value is not None]


def plain_line(
    dossier: Dossier,
    values: Sequence[Point],
    text: Callable[[float], str],
    name: str,
    *,
    top: float | None = None,
) -> Markup:
    """One figure over the run's time, from 0 to its maximum, or to `top`."""
    highest = max((value for _, value in values if value is not None), default=0.0)
    axis, up, label = across(dossier), scale.from_zero(highest, text), f"{name} over time"
    if top is not None:
        up = scale.Scale(0.0, top, (scale.Tick(0.5, text(top / 2)), scale.Tick(1.0, text(top))))
    shapes = [
        Shape(charts.area(values, axis, up), "under"),
        Shape(charts.line(values, axis, up), "line"),
    ]
    return timed(dossier, shapes, up, label, height=70, told=points_told(values, name, text))
