"""The parts of a report about time: where it went, how steps changed, how they are distributed."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.catalog.dossier import Dossier
from monitor.document import charts, scale
from monitor.document.charts import Look, Note, Shape
from monitor.document.markup import Markup, join, tag
from monitor.document.parts import ORDER, paint, section, table, toggled, toggles
from monitor.document.timed import across, plain_line, timed, windows_told
from monitor.language import said, word
from monitor.model import criticality, phase_names
from monitor.model.account import Account, Spent
from monitor.model.distribution import Distribution
from monitor.model.run import Run, Window
from monitor.model.since_start import points
from monitor.model.units import moment, number, percent, seconds, small_percent, visible, whole

# ── Where every second went ──────────────────────────────────────────────────────────────────────


def where_it_went(dossier: Dossier) -> Markup | None:
    account = dossier.account
    if not account.parts:
        return None
    bars = [(part.share, paint(part.kind, part.name), pointed(part, dossier)) for part in account.parts]
    return section(
        "Where every second went",
        charts.strip(bars, f"{seconds(account.seconds)} from start to end, by what was done"),
        _avoidable(account),
        tag("table", tag("tbody", _rows(dossier)), class_="spent"),
        note=_length(dossier),
    )


KINDS = {
    "setup": "Set-up",
    "step": "Steps",
    "apart": "Beside the steps",
    "stall": "Stalls",
    "unseen": "Not seen",
    "after": "After the last step",
}


def _rows(dossier: Dossier) -> Iterator[Markup | None]:
    """Every kind of time with its sum, followed by its parts if there is more than one."""
    for kind in dossier.account.kinds:
        own = [part for part in dossier.account.parts if part.kind == kind.kind]
        if len(own) > 1 and visible(kind.share):
            cells = (tag("td"), *_sums(kind), tag("td"))
            yield tag("tr", tag("th", KINDS[kind.kind], scope="row"), cells, class_="sum")
        yield from (_row(part, dossier, alone=len(own) == 1) for part in own)


def _sums(part: Spent) -> tuple[Markup, Markup]:
    return (
        tag("td", seconds(part.seconds), class_="figure"),
        tag("td", small_percent(part.share), class_="figure"),
    )


def _row(part: Spent, dossier: Dossier, *, alone: bool) -> Markup | None:
    if not visible(part.share) and part.kind != "apart":
        return None
    return tag(
        "tr",
        tag("th", tag("i", class_=f"key {paint(part.kind, part.name)}"), name_of(part, dossier), scope="row"),
        tag("td", charts.bar(part.share, paint(part.kind, part.name)), class_="bars"),
        _sums(part),
        tag("td", _times(part), class_="dim"),
        class_="alone" if alone else None,
    )


def name_of(part: Spent, dossier: Dossier) -> str:
    """A part's name; the time after the last step of a hung run has a name of its own."""
    hung = dossier.end is not None and dossier.end.how == "hung"
    return "no step any more" if hung and part.kind == "after" else phase_names.part(part.kind, part.name)


def _times(part: Spent) -> str:
    return "" if part.count is None else word("once") if part.count == 1 else f"{whole(part.count)} times"


def pointed(part: Spent, dossier: Dossier) -> str:
    """The tooltip of a part."""
    return f"{word(name_of(part, dossier))}: {seconds(part.seconds)}, {small_percent(part.share)}"


def _length(dossier: Dossier) -> str:
    lasted = seconds(dossier.account.seconds)
    of = " (of rank 0)" if len(dossier.run.ranks) > 1 else ""
    if dossier.run.live:
        return f"{lasted} since the start of the process{of}"
    return f"{lasted} from the start of the process to its end{of}"


def _avoidable(account: Account) -> Markup | None:
    found = account.avoidable
    if found is None or not visible(found.share):
        return None
    span = f"{percent(found.share)} of the run; {seconds(found.low)} to {seconds(found.high)}"
    return tag(
        "p",
        "Of this, about ",
        tag("b", seconds(found.likely)),
        f" ({span}) would not have been spent with every remedy below applied.",
        class_="waste",
    )


# ── Over time ────────────────────────────────────────────────────────────────────────────────────


def over_time(dossier: Dossier) -> Markup | None:
    parts = dossier.stretches
    if len(parts) < 2 and dossier.span is None:
        return None
    seen = dict.fromkeys(name for part in parts for name in part.window.phases)
    shown = [*(name for name in ORDER if name in seen), *(name for name in seen if name not in ORDER)]
    return section(
        "Over time",
        _span(dossier),
        tag("h3", "Share of the step, by phase"),
        toggles((phase_names.phase(name), paint("step", name)) for name in shown),
        _shares(dossier, shown),
        tag("h3", "Step time ", tag("small", "median, and up to the 95th percentile")),
        _step_time(dossier),
        join(_throughput(dossier)),
        note="from the start of the process; shaded: set-up, and warm-up or sampled steps, in no figure",
    )


TOLD_SHARE = 0.2
"""The ends of a close-up are told to this share of it."""


def _span(dossier: Dossier) -> Markup:
    """The part that is shown, and the way back; of the whole run, how to look closer."""
    if dossier.span is None:
        how = "Drag across a chart, or press + on it, to look closer; arrow keys show its values."
        return tag("p", how, class_="closer dim small")
    apart = (dossier.span[1] - dossier.span[0]) * TOLD_SHARE
    begin, end = (moment(at, apart) for at in dossier.span)
    return tag("p", f"From {begin} to {end}. ", tag("a", "Show the whole run", href="?"))


def _shares_in(window: Window, names: list[str]) -> Iterator[tuple[str, str]]:
    for name in reversed(names):
        if visible(window.phases.get(name)):
            yield phase_names.phase(name), percent(window.phases[name])


def _times_in(window: Window) -> Iterator[tuple[str, str]]:
    for name, value in (("median", window.step_p50), ("p95", window.step_p95), ("longest", window.step_max)):
        if value is not None:
            yield name, seconds(value)


def _shares(dossier: Dossier, names: list[str]) -> Markup:
    axis = across(dossier)
    paths = dict.fromkeys(names, "")
    for part in dossier.stretches:
        low = 0.0
        for name in names:
            share = part.window.phases.get(name, 0.0)
            high = min(1.0, low + share)
            if share:
                paths[name] += charts.block(axis.place(part.begin), axis.place(part.end), low, high)
            low = high
    shapes = [
        Shape(path, f"{paint('step', name)} {toggled(at)}") for at, (name, path) in enumerate(paths.items())
    ]
    told = windows_told(dossier, lambda window: _shares_in(window, names))
    up = scale.Scale(0.0, 1.0, (scale.Tick(0.5, percent(0.5)), scale.Tick(1.0, percent(1.0))))
    return timed(dossier, shapes, up, "share of each phase in the step over time", height=130, told=told)


def _step_time(dossier: Dossier) -> Markup:
    medians = points(dossier.stretches, lambda window: window.step_p50)
    slow = points(dossier.stretches, lambda window: window.step_p95)
    highest = max((value for _, value in (*slow, *medians) if value is not None), default=0.0)
    axis, up = across(dossier), scale.from_zero(highest, seconds)
    shapes = [
        Shape(charts.area(slow, axis, up, medians), "band"),
        Shape(charts.line(medians, axis, up), "line"),
    ]
    label = f"median step time, {seconds(dossier.run.step.p50)} over the run"
    return timed(dossier, shapes, up, label, told=windows_told(dossier, _times_in))


def _throughput(dossier: Dossier) -> Iterator[Markup]:
    rates = points(dossier.stretches, lambda window: window.samples_per_second)
    if rates:
        yield tag("h3", "Samples per second")
        yield plain_line(dossier, rates, number, "samples per second")


# ── Criticality ──────────────────────────────────────────────────────────────────────────────────


def critical(dossier: Dossier) -> Markup | None:
    """Of a run that was probed."""
    found = dossier.run.criticality
    if not found:
        return None
    return section(
        "What is critical",
        table(("where", "slope", "so it is"), criticality.rows(found)),
        note="by short delays put there; 1: a second saved there is a second won, 0: it is hidden behind "
        "something else",
    )


# ── Distribution and stalls ──────────────────────────────────────────────────────────────────────


def distribution(dossier: Dossier) -> Markup | None:
    spread, step = dossier.spread, dossier.run.step
    if spread is None:
        return None
    axis = scale.logarithmic(spread.bins[0].low, spread.bins[-1].high, seconds)
    highest = max(one.count for one in spread.bins)
    up = scale.from_zero(float(highest), lambda value: number(value))
    blocks = "".join(
        charts.block(axis.place(one.low), axis.place(one.high), 0.0, up.place(float(one.count)))
        for one in spread.bins
        if one.count
    )
    quantiles = (("median", step.p50), ("p95", step.p95), ("p99", step.p99))
    notes = [Note(axis.place(value), f"{word(name)} {seconds(value)}") for name, value in quantiles if value]
    beyond = f"; {whole(spread.longer)} longer ones are not in the picture" if spread.longer else ""
    return section(
        "How step times are spread",
        charts.chart(
            [Shape(blocks, "bins")],
            axis,
            up,
            "number of steps by their time",
            notes=_apart(notes),
            looks=_bins_told(spread, axis),
        ),
        _stalls(dossier.run),
        note=f"{whole(spread.steps)} steps, time on a logarithmic scale{beyond}",
    )


def _bins_told(spread: Distribution, axis: scale.Scale) -> Iterator[Look]:
    for one in spread.bins:
        if one.count:
            told = f"{seconds(one.low)} – {seconds(one.high)}\n{said(f'{whole(one.count)} steps')}"
            yield Look(axis.place(one.low), axis.place(one.high), told)


def _apart(notes: list[Note], least: float = 0.14) -> list[Note]:
    """Drops notes whose text would overlap another's."""
    kept: list[Note] = []
    for note in notes:
        if not kept or note.at - kept[-1].at >= least:
            kept.append(note)
    return kept


def _stalls(run: Run) -> Markup | None:
    if not run.stalls:
        return None
    rows = [
        (word(phase_names.stall(one.kind)), whole(one.count), seconds(one.mean_seconds),
         seconds(one.total_seconds), percent(one.share), number(one.every_steps))
        for one in run.stalls
    ]  # fmt: skip
    head = ("kind", "count", "each", "in all", "of the time", "every … steps")
    kept = 6 if any(one.every_steps is not None for one in run.stalls) else 5
    heading = tag(
        "h3", "Stalls ", tag("small", "steps far longer than the usual one, and what is beside them")
    )
    return join((heading, table(head[:kept], [row[:kept] for row in rows], figures=range(1, kept))))
