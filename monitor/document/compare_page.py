"""Two runs side by side as one HTML file: is B faster, where, and as much as predicted?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.catalog.dossier import Dossier
from monitor.comparison.compare_runs import Comparison, PhaseChange, Side
from monitor.comparison.figures import Figure, figures
from monitor.comparison.realised import Realised
from monitor.comparison.words import fate, verdict
from monitor.document import charts, scale
from monitor.document.charts import Shape
from monitor.document.markup import Markup, document, join, tag
from monitor.document.parts import legend, paint, section, style, table, toggled, toggles
from monitor.document.time_sections import pointed
from monitor.document.timed import looks
from monitor.language import said, word
from monitor.model import phase_names
from monitor.model.since_start import Point, points
from monitor.model.units import ABSENT, gain, gain_range, number, seconds, signed_seconds, visible

TONES = {"faster": "good", "slower": "bad", "same": "hint", "unsure": "hint"}


def compare_page(
    found: Comparison, a: Dossier, b: Dossier, ways: Markup | None = None, scripts: Sequence[str] = ()
) -> str:
    """`ways` and `scripts` as for a run's page."""
    sections = (
        _same_work(found),
        _figures(found),
        _time(a, b),
        _phases(found),
        _rates(a, b),
        _promises(found),
    )
    body = join((_head(found, a, b, ways), tag("main", sections), _foot(b)))
    return document(f"{found.a.name} → {found.b.name}: {verdict(found)}", style(), body, scripts)


def _head(found: Comparison, a: Dossier, b: Dossier, ways: Markup | None) -> Markup:
    named = found.a.name if found.a.name == found.b.name else f"{found.a.name} → {found.b.name}"
    main = [one for one in figures(found) if one.main and one.change != ABSENT]
    return tag(
        "header",
        ways or tag("p", tag("b", "gpumon"), word(" comparison"), class_="brand"),
        tag("h1", named),
        tag("p", _sentence(found), class_=f"verdict {TONES[found.verdict]}"),
        tag("div", (_tile(one) for one in main), class_="tiles"),
        tag("p", _side("A", found.a, a), tag("br"), _side("B", found.b, b), class_="dim"),
    )


def _sentence(found: Comparison) -> str:
    """In the reader's language before its first letter is made large: no catalogue knows it that way."""
    text = said(f"{verdict(found)}.")
    return f"{text[:1].upper()}{text[1:]}"


def _tile(one: Figure) -> Markup:
    return tag(
        "div",
        tag("b", one.change),
        tag("span", word(one.name)),
        tag("small", f"{one.a} → {one.b}"),
        class_="tile",
    )


def _side(letter: str, side: Side, dossier: Dossier) -> Markup:
    command = dossier.run.command
    return join(
        (
            tag("b", f"{letter} "),
            tag("code", side.run),
            f" {word(side.state)}, {seconds(side.seconds)}",
            " · " if command else None,
            tag("code", command) if command else None,
        )
    )


def _same_work(found: Comparison) -> Markup:
    if found.same_work:
        text = "Yes: script, arguments, model, data, batch size, device and host are the same."
        return section("The same work?", tag("p", text))
    return section(
        "The same work?", tag("ul", (tag("li", text) for text in found.warnings)), note="not quite"
    )


def _figures(found: Comparison) -> Markup:
    rows = [(word(one.name), *one[1:4]) for one in figures(found) if (one.a, one.b) != (ABSENT, ABSENT)]
    return section("Figures", table(("", "A", "B", "B / A"), rows, figures=(1, 2, 3)))


def _time(a: Dossier, b: Dossier) -> Markup:
    """Both on one scale, so that their lengths can be compared."""
    axis = scale.of_time(max(one.account.seconds for one in (a, b)))
    strips = [join(_strip(letter, one, axis)) for letter, one in (("A", a), ("B", b))]
    shown = [part for one in (a, b) for part in one.account.parts if visible(part.share)]
    keys = {phase_names.part(part.kind, part.name): paint(part.kind, part.name) for part in shown}
    return section("Where every second went", join(strips), legend(keys.items()))


def _strip(letter: str, dossier: Dossier, axis: scale.Scale) -> Iterator[Markup]:
    account = dossier.account
    parts = [
        (axis.place(part.seconds), paint(part.kind, part.name), pointed(part, dossier))
        for part in account.parts
    ]
    yield tag("h3", f"{letter} ", tag("small", seconds(account.seconds)))
    yield charts.strip(parts, f"{letter}: where {seconds(account.seconds)} went")


def _phases(found: Comparison) -> Markup | None:
    if not found.phases:
        return None
    axis = scale.of_time(max(max(one.before_seconds, one.after_seconds) for one in found.phases))
    rows = [_phase(one, axis) for one in found.phases if one.before_seconds or one.after_seconds]
    return section("A step, by phase", table(("phase", "", "A", "B", "change"), rows, figures=(2, 3, 4)))


def _phase(one: PhaseChange, axis: scale.Scale) -> list[Markup | str]:
    """The upper, paler bar is A; the lower one is B."""
    color = paint("step", one.name)
    bars = (
        charts.bar(axis.place(one.before_seconds), f"{color} faded"),
        charts.bar(axis.place(one.after_seconds), color),
    )
    return [
        word(phase_names.phase(one.name)),
        tag("div", bars, class_="pair"),
        seconds(one.before_seconds),
        seconds(one.after_seconds),
        signed_seconds(-one.saved_seconds),
    ]


def _rates(a: Dossier, b: Dossier) -> Markup | None:
    """Both throughputs, each over its own run's time."""
    lines = [(one, points(one.stretches, lambda window: window.samples_per_second)) for one in (a, b)]
    values = [value for _, line in lines for _, value in line if value is not None]
    if any(len(line) < 2 for _, line in lines):
        return None
    axis = scale.of_time(max(a.run.elapsed_seconds, b.run.elapsed_seconds))
    up = scale.from_zero(max(values), number)
    shapes = [
        Shape(charts.line(line, axis, up), f"{class_} {toggled(at)}")
        for at, ((_, line), class_) in enumerate(zip(lines, ("line other", "line"), strict=True))
    ]
    keys = toggles((("A", "key-other"), ("B", "key-line")))
    seen = looks(axis, _rates_told(*(line for _, line in lines)))
    picture = charts.chart(shapes, axis, up, "samples per second", looks=seen)
    return section("Samples per second over time", keys, picture)


def _rates_told(a: list[Point], b: list[Point]) -> list[tuple[float, str]]:
    """At each point of the run that took longer."""
    moments = [at for at, _ in max(a, b, key=lambda line: line[-1][0])]
    return [
        (at, f"{seconds(at)}\nA {number(_nearest(a, at))}\nB {number(_nearest(b, at))}") for at in moments
    ]


def _nearest(line: list[Point], moment: float) -> float | None:
    """None when the run was over."""
    return None if moment > line[-1][0] else min(line, key=lambda point: abs(point[0] - moment))[1]


def _promises(found: Comparison) -> Markup | None:
    parts = [*map(_promise, found.realised), *_fates(found)]
    return section("Predicted and realised", join(parts)) if parts else None


def _promise(one: Realised) -> Markup:
    speedup = one.predicted
    promised = f"predicted {gain_range(speedup.low, speedup.likely, speedup.high)}, " if speedup else ""
    came = fate(one) if one.realised is None else f"realised {fate(one)}"
    changed = f" ({one.changed})" if one.changed else ""
    picture = (
        charts.ranged(speedup.low, speedup.likely, speedup.high, one.realised, gain) if speedup else None
    )
    kept = one.realised is not None
    words = tag("p", tag("code", one.id), f" gone in B{changed}: ", tag("b", f"{promised}{came}"))
    return tag("div", words, picture, class_="promise" if kept else "promise open")


def _fates(found: Comparison) -> Iterator[Markup]:
    for name, ids in (("Still there", found.remaining), ("New in B", found.new)):
        if ids:
            yield tag("p", tag("b", f"{name}: "), ", ".join(ids))
    gains = found.predicted_together
    if gains is not None and any(one.realised is not None for one in found.realised):
        together = gain_range(gains.low, gains.likely, gains.high)
        yield tag("p", f"Together they were predicted to give {together}.")


def _foot(dossier: Dossier) -> Markup:
    text = (
        "Speed is samples (or steps) per second over the whole run, without warm-up but with stalls. The "
        "interval is a 95 % block bootstrap over the timeline; the noise is what the same method finds "
        f"between a run and itself. Written by gpumon {dossier.gpumon}."
    )
    return tag("footer", tag("p", text))
