"""Charts over a run's own time, all with the same axis, marking the end of the set-up and of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from monitor.catalog.dossier import Dossier
from monitor.document import charts, scale
from monitor.document.charts import Note, Shape
from monitor.document.markup import Markup
from monitor.model.since_start import Point
from monitor.model.units import visible

NAMED_HEIGHT = 100
"""From this height in pixels, a chart has room for words beside its numbers."""


def across(dossier: Dossier) -> scale.Scale:
    return scale.of_time(dossier.run.elapsed_seconds)


def timed(
    dossier: Dossier, shapes: Iterable[Shape], up: scale.Scale, label: str, *, height: int = 120
) -> Markup:
    """A chart from the start of the run to its end."""
    axis = across(dossier)
    notes = []
    if dossier.end is not None and dossier.last_step_seconds is not None:
        words = dossier.end.how if height >= NAMED_HEIGHT else ""
        notes.append(Note(axis.place(dossier.last_step_seconds), words, "bad"))
    return charts.chart((*_shades(dossier, axis), *shapes), axis, up, label, height=height, notes=notes)


def _shades(dossier: Dossier, axis: scale.Scale) -> Iterator[Shape]:
    """The time that is in no figure: the set-up, and steps that are not counted."""
    before = axis.place(dossier.run.setup_seconds or 0.0)
    if visible(before):
        yield Shape(charts.block(0.0, before, 0.0, 1.0), "before", "set-up: before the first step")
    uncounted = "".join(
        charts.block(axis.place(begin), axis.place(end), 0.0, 1.0) for begin, end in dossier.uncounted
    )
    if uncounted:
        yield Shape(uncounted, "uncounted", "warm-up or sampled steps: not counted")


def plain_line(
    dossier: Dossier,
    values: Sequence[Point],
    text: Callable[[float], str],
    label: str,
    *,
    top: float | None = None,
) -> Markup:
    """One figure over the run's time, from 0 to its maximum, or to `top`."""
    highest = max((value for _, value in values if value is not None), default=0.0)
    axis, up = across(dossier), scale.from_zero(highest, text)
    if top is not None:
        up = scale.Scale(0.0, top, (scale.Tick(0.5, text(top / 2)), scale.Tick(1.0, text(top))))
    shapes = [
        Shape(charts.area(values, axis, up), "under"),
        Shape(charts.line(values, axis, up), "line", label),
    ]
    return timed(dossier, shapes, up, label, height=70)
