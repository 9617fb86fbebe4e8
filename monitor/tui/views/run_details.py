"""The rest of a run: stalls, ranks compared, loader, scalars, configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.language import word
from monitor.model import units
from monitor.model.run import Rank, Run
from monitor.tui.table import Column, chosen, heading, row
from monitor.tui.text import Cell, Line, Room, Span, fit, line, wrap
from monitor.tui.views.parts import now_in, pairs_lines, section
from monitor.tui.views.symbols import RUN
from monitor.tui.widgets.graph import bar, phase_bar

RANKS = (
    Column("rank", "Ranks", 6),
    Column("device", "on", 8),
    Column("its", "it/s", 6, ">", drop=3),
    Column("p50", "p50", 8, ">"),
    Column("skew", "against slowest", 18, drop=1, grow=1, most=30),
    Column("p95", "p95", 8, ">", drop=4),
    Column("phases", "where the step goes", 16, grow=2, short="step"),
    Column("now", "now in", 15),
    Column("lost", "lost", 5, ">", drop=2),
)
STALLS = (
    Column("kind", "Stalls", 12),
    Column("count", "count", 6, ">"),
    Column("mean", "each", 9, ">"),
    Column("share", "share", 6, ">"),
    Column("every", "every", 12, ">"),
    Column("last", "last step", 10, ">", drop=1),
)


def ranks(run: Run, room: Room) -> list[Line]:
    """Every rank; the bars are relative to the slowest one's p50, which makes skew visible."""
    layout = chosen(RANKS, room.width - 2, 1)
    lines = [heading(layout, gap=1, lead=1)]
    for rank in run.ranks:
        cells = _rank_cells(rank)
        if "skew" in layout:
            cells["skew"] = bar(rank.slowest_ratio, layout["skew"][1], "info")
        shares = {phase.name: phase.share for phase in rank.phases}
        cells["phases"] = phase_bar(shares, layout["phases"][1], plain=room.plain)
        lines.append(row(layout, cells, gap=1, lead=" "))
    return [Line(made.spans) for made in lines] + [line()]


def _rank_cells(rank: Rank) -> dict[str, Cell]:
    now = now_in(rank.state, rank.live_phase, rank.live_seconds)
    return {
        "rank": [RUN[rank.state].span, Span(f" {rank.rank}", "strong")],
        "device": rank.device or units.ABSENT,
        "its": units.number(rank.iterations_per_second),
        "p50": units.seconds(rank.step.p50),
        "p95": units.seconds(rank.step.p95),
        "now": Span(now, "alarm" if rank.state == "stalled" else "dim"),
        "lost": Span(str(rank.missing_records), "warn" if rank.missing_records else "dim"),
    }


def stalls(run: Run, room: Room) -> list[Line]:
    """What interrupts the training, how often, and what it costs."""
    if not run.stalls:
        return []
    layout = chosen(STALLS, room.width - 2, 1)
    lines = [heading(layout, gap=1, lead=1)]
    for stall in run.stalls:
        every = f"{units.number(stall.every_steps)} steps" if stall.every_steps else units.ABSENT
        cells: dict[str, Cell] = {
            "kind": word(stall.kind), "count": str(stall.count), "mean": units.seconds(stall.mean_seconds),
            "share": units.small_percent(stall.share), "every": every, "last": units.count(stall.last_step),
        }  # fmt: skip
        lines.append(row(layout, cells, gap=1, lead=" "))
    return [Line(made.spans) for made in lines] + [line()]


def loader(run: Run, room: Room) -> list[Line]:
    """Inside the data loader, from sampled batches."""
    times = run.ranks[0].loader if run.ranks else None
    if times is None or not times.batches:
        return []
    pairs = {
        "sampler": units.seconds(times.sampler_seconds),
        "fetch a batch": units.seconds(times.fetch_seconds),
        "one __getitem__": units.seconds(times.getitem_seconds),
        "collate": units.seconds(times.collate_seconds),
        "wait for worker": units.seconds(times.wait_seconds),
        "pin": units.seconds(times.pin_seconds),
        "workers busy": units.percent(times.worker_busy_ratio),
    }
    known = {name: text for name, text in pairs.items() if text != units.ABSENT}
    return [section("Inside the loader"), *pairs_lines(known, room), line()]


ABOVE = frozenset(
    f"loader.{part}_seconds" for part in ("sampler", "fetch", "getitem", "collate", "wait", "pin")
)
"""Scalars that "Inside the loader" shows already."""


def scalars(run: Run, room: Room) -> list[Line]:
    """The user's own scalars first, then those the probes measured."""
    found = run.ranks[0].scalars if run.ranks else {}
    if not found:
        return []
    own = {key: units.value_of(key, value) for key, value in found.items() if "." not in key}
    probes = {
        units.label(key).replace(".", " "): units.value_of(key, value)
        for key, value in found.items()
        if "." in key and key not in ABOVE
    }
    return [section("Scalars"), *pairs_lines(own | probes, room, ours=False), line()]


def hotspots(run: Run, room: Room) -> list[Line]:
    """Which lines of the user's code take a phase's time, from a few sampled steps."""
    found = [spot for spot in run.config.get("hotspots") or () if isinstance(spot, Mapping)]
    if not found:
        return []
    lines = [section("Hot lines")]
    for spot in found[:8]:
        name = str(spot.get("file", "?")).rpartition("/")[2]
        at = f":{spot['line']}" if spot.get("line") else ""  # 0: no line of the function is singled out
        where = f"  {name}{at} {spot.get('function', '')}"
        share = fit(Span(units.tight_percent(spot.get("share")), "strong"), 5, ">")
        took = fit(units.seconds(spot.get("seconds")), 10, ">")
        phase = fit(word(str(spot.get("phase", ""))), 10)
        lines.append(line("   ", phase, share, took, Span(where, "accent"), width=room.width))
        if spot.get("code"):
            lines.append(line(" " * 13, Span(str(spot["code"]).strip(), "dim"), width=room.width))
    return [*lines, line()]


def configuration(run: Run, room: Room) -> list[Line]:
    """The configuration, one group per line; not what the probe timed and located, which others show."""
    if not run.config:
        return []
    plain = {key: value for key, value in run.config.items() if not isinstance(value, Mapping | list)}
    lines = [section("Configuration"), *_group("", plain, room)]
    for key, value in run.config.items():
        if isinstance(value, Mapping):
            lines += _group(key, value, room)
        elif isinstance(value, list) and not any(isinstance(one, Mapping) for one in value):
            lines += _group(key, {"": units.value_of(key, value)}, room)
    if run.command:
        lines += _group("command", {"": " ".join(run.command.split())}, room)
    return [*lines, line()]


def _group(name: str, values: Mapping[str, Any], room: Room) -> list[Line]:
    text = " · ".join(f"{key} {units.value_of(key, value)}".strip() for key, value in values.items())
    parts = wrap(text, max(10, room.width - 16))
    return [
        line("   ", fit(Span(name if index == 0 else "", "dim"), 11), " ", part)
        for index, part in enumerate(parts)
        if text
    ]
