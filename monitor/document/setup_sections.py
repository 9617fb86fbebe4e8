"""The parts of a report about the program: its hot lines, its configuration, its ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from monitor.catalog.dossier import Dossier
from monitor.document import charts
from monitor.document.markup import Markup, tag
from monitor.document.parts import paint, section, table, value_text
from monitor.language import word
from monitor.model import phase_names
from monitor.model.run import Run
from monitor.model.units import ABSENT, label, number, percent, seconds, size, small_percent, whole

HOT_LINES = 12
LISTS = frozenset(("hotspots", "work", "sites", "source", "setup", "keeps", "per_epoch", "trackers"))
"""Parts of the probe that are shown elsewhere, or that only concern the source."""
GENERAL = "general"


def hot_lines(dossier: Dossier) -> Markup | None:
    """The script's own lines that take the most time in a step, longest first."""
    spots = [
        one
        for one in _list(dossier.run.config.get("hotspots"))
        if isinstance(one.get("seconds"), int | float)
    ]
    if not spots:
        return None
    shown = sorted(spots, key=lambda one: -float(one["seconds"]))[:HOT_LINES]
    return section(
        "Hot lines",
        table(
            ("line", "code", "phase", "of its phase", "", "a step"),
            [_spot(one) for one in shown],
            figures=(3, 5),
        ),
        note="from a few sampled steps",
    )


def _spot(spot: Mapping[str, Any]) -> list[Markup | str]:
    phase, share = str(spot.get("phase", "")), float(spot.get("share") or 0.0)
    return [
        _place(spot),
        tag("code", str(spot.get("code") or spot.get("function") or "")),
        word(phase_names.phase(phase)),
        percent(share),
        charts.bar(share, paint("step", phase)),
        seconds(spot["seconds"]),
    ]


def _place(spot: Mapping[str, Any]) -> Markup:
    """ "train.py:41"; of a file outside the script's folder the last two names, so that the code has room;
    without the line where the samples single out none (0)."""
    file, line = str(spot.get("file") or "?"), spot.get("line")
    path = PurePath(file)
    short = str(PurePath(*path.parts[-2:])) if path.is_absolute() else file
    return tag("code", f"{short}:{line}" if line else short, title=None if short == file else file)


def _list(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list | tuple) else []


def configuration(dossier: Dossier) -> Markup | None:
    groups = dict(_groups(dossier.run))
    if not groups:
        return None
    cards = [
        tag("div", tag("h3", name), tag("table", tag("tbody", map(_setting, values.items()))))
        for name, values in groups.items()
    ]
    return section("Configuration", tag("div", cards, class_="grid settings"), note="as reported by the run")


def _groups(run: Run) -> Iterator[tuple[str, dict[str, Any]]]:
    plain = {
        key: value
        for key, value in run.config.items()
        if key not in LISTS and not isinstance(value, Mapping) and value not in (None, "", [], ())
    }
    if run.batch_size is not None:
        plain["batch_size"] = run.batch_size
    if plain:
        yield GENERAL, plain
    for key, value in run.config.items():
        if isinstance(value, Mapping) and value and key not in LISTS:
            yield label(key), dict(value)


def _setting(entry: tuple[str, Any]) -> Markup:
    key, value = entry
    return tag("tr", tag("th", label(key), scope="row"), tag("td", value_text(key, value)))


def ranks(dossier: Dossier) -> Markup | None:
    if len(dossier.run.ranks) < 2:
        return None
    rows = [
        (
            str(rank.rank),
            word(rank.state),
            rank.device or ABSENT,
            whole(rank.steps),
            seconds(rank.step.p50),
            seconds(rank.step.p95),
            number(rank.samples_per_second),
            percent(rank.slowest_ratio),
            small_percent(rank.overhead_ratio),
            size(rank.scalars.get("cuda.max_allocated_bytes", rank.scalars.get("proc.rss_bytes"))),
        )
        for rank in dossier.run.ranks
    ]
    head = (
        "rank",
        "state",
        "device",
        "steps",
        "median",
        "p95",
        "samples/s",
        "of the slowest",
        "gpumon",
        "memory",
    )
    return section("Ranks", table(head, rows, figures=range(3, len(head))))
