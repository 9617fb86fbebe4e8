"""Findings: what each is about, what it is, how to fix it; in the engine's ranking."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from monitor.language import said, word
from monitor.model import units
from monitor.model.finding import SERIOUS, Finding
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.line_budget import TALL, Wants
from monitor.tui.table import Column, Layout, chosen, gap_for, heading, occupied, row
from monitor.tui.text import Block, Cell, Line, Room, Span, line, wrap_spans
from monitor.tui.views.symbols import SEVERITY, STOPS

COLUMNS = (
    Column("text", "Findings", 48, grow=3, most=150),
    Column("gain", "predicted gain", 17, drop=1),
    Column("id", "rule", 20, drop=3),
    Column("since", "for", 4, ">", drop=2),
)
NEXT = "for the next run"
"""Title of the gains of a run that is over: it promises nothing for itself."""
WITH_GAIN = 72
"""From this width the predicted gain has its own column; on narrower screens it is shown with the fix."""
FIX_WIDTH, FIX_HEIGHT = 110, 30
"""From this screen size, the fix of the chosen finding is shown beside the list."""
BESIDE = (3, 2)
"""Shares of the width: the list, and the fix beside it."""


def wants(frame: Frame, room: Room) -> Wants:
    """All lines if they are few; with the fix shown beside them, room for the first fix, or for the longest
    if there is enough."""
    beside = fix_fits(frame, room)
    width = room.width * BESIDE[0] // sum(BESIDE) if beside else room.width
    rows = _lengths(frame, Room(width, room.height), fix=not beside)
    few = 1 + sum(rows[:1]) if room.height < TALL else 1 + sum(rows[:6])
    if not beside:
        sizes = tuple(1 + sum(rows[:shown]) for shown in (4, 3, 2))
        return Wants((*sizes, few, 3), most=1 + sum(rows), takes_rest=True, spaced=True)
    first, *others = [_fix_lines(finding) for _, finding in frame.findings()]
    least = max(few, min(first, (room.height + 4) // 3))
    return Wants((least,), most=max(1 + sum(rows), first, *others), takes_rest=True, spaced=True)


def _fix_lines(finding: Finding) -> int:
    """Roughly how many lines the fix takes beside the list."""
    return finding.remedy.change.rstrip("\n").count("\n") + 8


def _lengths(frame: Frame, room: Room, *, fix: bool) -> list[int]:
    """How many lines each finding takes."""
    entries = list(frame.findings())
    if not entries:
        return [1]
    layout, gap = _layout(frame, entries, room)
    return [len(_lines(frame, layout, gap, *entry, fix=fix)) for entry in entries]


def fix_fits(frame: Frame, room: Room) -> bool:
    """Whether there is a fix, and room for it beside the findings."""
    has_fix = any(finding.remedy.summary for _, finding in frame.findings())
    return has_fix and room.width >= FIX_WIDTH and room.height >= FIX_HEIGHT


Entry = tuple[HostFrame, Finding]


def table(frame: Frame, room: Room, run: str | None = None, *, fix: bool = True) -> Block:
    """All findings, or those about one run; without the fixes if one is shown beside them."""
    entries = [(h, f) for h, f in frame.findings(past=run is not None) if run is None or f.run == run]
    if not entries:
        return Block(
            (line(Span(f" {word('Findings')}", "title"), width=room.width),), (_none(frame, room, run),)
        )
    layout, gap = _layout(frame, entries, room)
    own = run is not None
    rows = [made for entry in entries for made in _lines(frame, layout, gap, *entry, fix=fix, own=own)]
    return Block((Line(heading(layout, gap=gap, lead=1).spans),), tuple(rows))


def _layout(frame: Frame, entries: Sequence[Entry], room: Room) -> tuple[Layout, int]:
    gap = gap_for(room.width)
    over = not any(finding.live for _, finding in entries)
    text, gained, rule, since = COLUMNS
    rule = replace(rule, width=max((len(finding.id) for _, finding in entries), default=0))
    gained = replace(gained, title=NEXT) if over else gained
    columns = [text, *([gained] if room.width >= WITH_GAIN else []), rule, since]
    return chosen(occupied(columns, [_cells(finding) for _, finding in entries]), room.width - 2, gap), gap


def _none(frame: Frame, room: Room, run: str | None) -> Line:
    live = any(one.live for _, one in frame.runs() if run in (None, one.id))
    over = "nothing was found in this run" if run else "nothing to find: no run is on"
    text = "nothing found so far; rules need some steps first" if live else over
    return line(Span(f"   {text}", "dim"), width=room.width)


def key_of(host: HostFrame, finding: Finding) -> Hashable:
    return ("finding", host.label, finding.id, finding.run, finding.rank, finding.gpu)


def lookup(frame: Frame, key: Hashable) -> Entry | None:
    return next(((h, f) for h, f in frame.findings(past=True) if key_of(h, f) == key), None)


def _lines(
    frame: Frame,
    layout: Layout,
    gap: int,
    host: HostFrame,
    finding: Finding,
    *,
    fix: bool,
    own: bool = False,
) -> list[Line]:
    """The statement beside its gain, wrapped, with the fix below; `own`: on the page of its run."""
    key, width = key_of(host, finding), layout["text"][1]
    about = _rank(finding) if own else concerns(frame, host, finding)
    first, *rest = wrap_spans(_statement(finding, about), width - 2)
    lead = SEVERITY[finding.severity].span
    made = [row(layout, _cells(finding) | {"text": [lead, Span(" "), *first]}, key=key, gap=gap, lead=" ")]
    extent = made[0].slots[0].end
    more = [*rest, *(wrap_spans(_fix(finding, "gain" in layout), extent - 6, hang=2) if fix else [])]
    made += [line("   ", part, width=extent, key=key) for part in more]
    return made if host.current else [one.dimmed() for one in made]


def _statement(finding: Finding, about: str) -> list[Span]:
    strong = "strong" if finding.severity in SERIOUS else ""
    lead = [Span(f"{about}: ", "title" if strong else "dim")] if about else []
    return [*lead, Span(finding.brief, strong)]


def _rank(finding: Finding) -> str:
    return "" if finding.rank is None or f"rank {finding.rank}" in finding.title else f"rank {finding.rank}"


def _fix(finding: Finding, has_gain: bool) -> list[Span]:
    """What to do, with the command to type if there is one, and the gain if no column shows it."""
    if not finding.remedy.summary:
        return []
    told = "" if has_gain or finding.speedup is None else _told(finding)
    command = f": {finding.remedy.command}" if finding.remedy.command else ""
    return [
        Span("→ ", "accent"),
        Span(said(finding.remedy.summary).rstrip(STOPS), "dim"),
        *([Span(command, "accent")] if command else []),
        *([Span(told, "gain")] if told else []),
    ]


def _cells(finding: Finding) -> dict[str, Cell]:
    return {
        "text": finding.title,
        "gain": Span(gain(finding), "gain" if finding.speedup else "dim"),
        "id": Span(finding.id, "dim"),
        "since": Span(units.age(finding.age_seconds) if finding.since else "", "dim"),
    }


def recorded(found: Iterable[Finding], room: Room) -> Block:
    """The findings a past run ended with; they cannot be opened."""
    head = line(Span(f" {word('Findings')}", "title"))
    rows: list[Line] = []
    for finding in found:
        lead = SEVERITY[finding.severity].span
        first, *rest = [
            *wrap_spans([Span(finding.title, "strong")], room.width - 4),
            *wrap_spans(_fix(finding, False), room.width - 6, hang=2),
        ]
        rows += [line(" ", lead, " ", first), *(line("   ", part) for part in rest)]
    return Block((head,), tuple(rows) or (line(Span("   none were recorded", "dim")),))


def _told(finding: Finding) -> str:
    """The gain behind the fix, where no column shows it."""
    told = gain(finding)
    return f", predicted {told}" if finding.live else f", predicted for the next run: {told}"


def gain(finding: Finding) -> str:
    speed = finding.speedup
    return units.gain_range(speed.low, speed.likely, speed.high) if speed else ""


def concerns(frame: Frame, host: HostFrame, finding: Finding) -> str:
    """The run, rank or GPU a finding is about, by its familiar name; empty if the title already says so."""
    subject = "" if finding.subject in finding.title else finding.subject
    return " ".join(part for part in (host.label if frame.several else "", subject) if part)
