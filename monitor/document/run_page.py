"""A run as one HTML file: it loads nothing, runs no script, and prints."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from monitor.catalog.dossier import Dossier
from monitor.document import finding_section, machine_sections, node_section, setup_sections, time_sections
from monitor.document.markup import Markup, document, join, tag
from monitor.document.parts import prose, style, style_within
from monitor.language import said, word
from monitor.model.devices import by_device
from monitor.model.run import Run
from monitor.model.units import gain, number, percent, seconds, small_percent, visible, whole

SECTIONS = (
    time_sections.where_it_went,
    finding_section.findings,
    finding_section.kept,
    node_section.nodes,
    time_sections.critical,
    time_sections.over_time,
    time_sections.distribution,
    machine_sections.beneath,
    machine_sections.loss,
    setup_sections.hot_lines,
    setup_sections.ranks,
    setup_sections.configuration,
)
"""From top to bottom; a section with nothing to say returns None."""
FIRST = 3
"""How many of them a notebook shows unfolded: where the time went, and what to change."""


def run_page(dossier: Dossier, ways: Markup | None = None, scripts: Sequence[str] = ()) -> str:
    """`ways` are links to a daemon's other pages and `scripts` what it does for who points and drags; a file
    to keep has neither."""
    body = join((_head(dossier, ways), tag("main", (make(dossier) for make in SECTIONS)), _foot(dossier)))
    title = f"{dossier.run.name}: {dossier.sentence}"
    return document(title, style(), body, scripts, data_live=dossier.run.live or None)


def run_fragment(dossier: Dossier) -> str:
    """The report as part of another page, such as a notebook: its style applies only to itself."""
    first, more = ((make(dossier) for make in some) for some in (SECTIONS[:FIRST], SECTIONS[FIRST:]))
    folded = tag("details", tag("summary", "over time, machine, hot lines, configuration"), more)
    body = (_head(dossier, None), tag("main", first, folded), _foot(dossier))
    return tag("div", tag("style", Markup(style_within(".gpumon-report"))), body, class_="gpumon-report")


def _head(dossier: Dossier, ways: Markup | None) -> Markup:
    run = dossier.run
    tone = "bad" if dossier.end is not None else _tone(run)
    return tag(
        "header",
        ways or tag("p", tag("b", "gpumon"), word(" run report"), class_="brand"),
        tag("p", _still(dossier), class_="silent", role="status") if ways and run.live else None,
        tag("h1", run.name, " ", tag("span", _state(run), class_=f"chip state-{run.state}")),
        tag("p", prose(dossier.sentence), class_=f"verdict {tone}"),
        tag("div", (_tile(*one) for one in _figures(dossier)), class_="tiles"),
        tag("p", " · ".join(map(said, _facts(run))), class_="dim"),
        tag("pre", tag("code", run.command)) if run.command else None,
    )


def _still(dossier: Dossier) -> str:
    """Shown by the page's script when the daemon is silent."""
    return f"The daemon does not answer: this page stands still since {_moment(dossier.written)}."


def _tone(run: Run) -> str:
    return {"fix": "warn", "hint": "hint", "healthy": "good"}.get(
        run.verdict.kind if run.verdict else "", "hint"
    )


def _state(run: Run) -> str:
    return "interrupted" if run.interrupted else "hung" if run.state == "stalled" else run.state


def _figures(dossier: Dossier) -> Iterator[tuple[str, str, str]]:
    """Tiles: (figure, what it is, more about it)."""
    run = dossier.run
    yield (
        seconds(run.elapsed_seconds),
        "start to end" if run.ended else "so far",
        f"{whole(run.steps)} steps",
    )
    if run.samples_per_second:
        yield number(run.samples_per_second), "samples/s", f"{number(run.iterations_per_second)} steps/s"
    elif run.iterations_per_second:
        yield number(run.iterations_per_second), "steps/s", ""
    if run.step.p50 is not None:
        yield seconds(run.step.p50), "median step", f"95 % within {seconds(run.step.p95)}"
    if run.starved_ratio is not None:
        yield percent(run.starved_ratio), "GPU idle", "share of the step"
    if run.combined is not None and run.verdict is not None and run.verdict.kind == "fix":
        when = "predicted" if run.live else "predicted for the next run"
        yield gain(run.combined.likely), "with all remedies", when
    if run.trend is not None and run.trend != "steady":
        yield percent(run.trend_ratio), "of its best throughput", "at the end"


def _tile(figure: str, name: str, more: str) -> Markup:
    return tag(
        "div",
        tag("b", figure),
        tag("span", word(name)),
        tag("small", word(more)) if more else None,
        class_="tile",
    )


def _facts(run: Run) -> Iterator[str]:
    yield run.id
    yield f"started {_moment(run.started)}"
    for name, value in (
        ("by", run.user),
        ("on", run.hostname),
        ("device", run.ranks[0].device if run.ranks else None),
        ("GPU", run.config.get("gpu_name")),
        ("batch", run.batch_size),
        ("ranks", len(run.ranks) if len(run.ranks) > 1 else None),
        ("framework", run.framework),
        ("Slurm job", run.slurm_job),
        ("pod", run.pod),
        ("commit", run.git_commit[:10] if run.git_commit else None),
    ):
        if value:
            yield f"{word(name)} {value}"


def _moment(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))


def _foot(dossier: Dossier) -> Markup:
    run, lead = dossier.run, dossier.run.ranks[0] if dossier.run.ranks else None
    parts = [
        f"Written {_moment(dossier.written)} by gpumon {dossier.gpumon}.",
        "A step lasts from its start to the start of the next; of a run's ranks the first is shown.",
        "Figures of steps are without warm-up.",
    ]
    if lead is not None and lead.overhead_ratio is not None:
        parts.append(f"gpumon itself took {small_percent(lead.overhead_ratio)} of the steps.")
    if run.lost:
        parts.append(f"{whole(run.lost)} of {whole(run.steps)} steps could not be read.")
    if visible(run.starved_ratio) and any(one.device_times.measured_steps for one in run.ranks):
        parts.append("The time a GPU was without work is from its own events.")
    if devices := by_device(run):
        parts.append(f"Its devices, each by itself: {devices}.")
    return tag("footer", tag("p", " ".join(parts)))
