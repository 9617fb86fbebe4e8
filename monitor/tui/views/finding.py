"""One finding in full: the evidence, why it matters, what to change, and what that gains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from monitor.language import word
from monitor.model import units
from monitor.model.finding import Finding, Speedup
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.text import Block, Line, Room, Span, cells, fit, line, wrap, wrap_spans
from monitor.tui.views.findings import concerns, gain
from monitor.tui.views.parts import section
from monitor.tui.views.symbols import SEVERITY

if TYPE_CHECKING:
    from monitor.store.ledger import Entry


def preview(finding: Finding, room: Room) -> Block:
    """The fix of the chosen finding, beside the list."""
    width = room.width - 2
    head = line(Span(f" {word('Fix')}", "title"), width=room.width)
    rows = [
        *(line("   ", Span(text, "strong")) for text in wrap(finding.remedy.summary, width - 2)),
        *_indent(diff_lines(finding.remedy.change, width - 2)),
        line(),
        *_indent(_gain_lines(finding, width - 3)),
    ]
    return Block(
        (head,), tuple(rows) if finding.remedy.summary else (line(Span("   nothing to fix", "dim")),)
    )


def about(frame: Frame, host: HostFrame, finding: Finding, room: Room) -> list[Line]:
    """Title, what it is about, why it matters, the evidence."""
    symbol = SEVERITY[finding.severity]
    width = room.width - 3
    since = f" · for {units.duration(finding.age_seconds)}" if finding.since else ""
    facts = f"{symbol.word} · {finding.id} · {concerns(frame, host, finding)}{since}"
    titles = wrap(finding.title, width)
    leads = [Span(f" {symbol.char} ", symbol.role), *(Span("   ") for _ in titles[1:])]
    lines = [line(lead, Span(text, symbol.role)) for lead, text in zip(leads, titles, strict=True)]
    lines += [*(line("   ", Span(text, "dim")) for text in wrap(facts, width)), line()]
    if finding.why:
        lines += [
            section("Why it matters"),
            *(line("   ", text) for text in wrap(finding.why, width)),
            line(),
        ]
    return [*lines, section("Evidence"), *evidence(finding, room), line()]


def evidence(finding: Finding, room: Room) -> Iterable[Line]:
    """Every number the rule used, with its unit."""
    if not finding.evidence:
        yield line(Span("   no figures given", "dim"))
        return
    names = {key: word(units.label(key)) for key in finding.evidence}
    wide = min(34, max(map(cells, names.values())) + 2)
    for key, value in finding.evidence.items():
        text = units.value_of(key, value)
        parts = wrap(text, max(8, room.width - wide - 5))
        yield line("   ", fit(Span(names[key], "dim"), wide), Span(parts[0], "strong"))
        yield from (line(" " * (wide + 3), Span(part, "strong")) for part in parts[1:])


def change(finding: Finding, room: Room) -> list[Line]:
    """The remedy as a diff, then the predicted gain with its range."""
    if not finding.remedy.summary:
        return [section("Nothing to change")]
    lines = [
        section("What to change"),
        *(line("   ", Span(t, "strong")) for t in wrap(finding.remedy.summary, room.width - 4)),
        line(),
    ]
    if finding.remedy.change:
        lines += [*_indent(diff_lines(finding.remedy.change, room.width - 5)), line()]
    return [*lines, section("Predicted gain"), *_indent(_gain_lines(finding, room.width - 4)), line()]


def _indent(lines: Iterable[Line]) -> list[Line]:
    return [Line((Span("   "), *made.spans)) for made in lines]


def diff_lines(text: str, width: int) -> list[Line]:
    """Added and removed lines, marked by the sign in front as well as by colour."""
    roles = {"+": "add", "-": "del", "@": "accent"}
    raw = text.rstrip("\n").split("\n") if text else []
    is_diff = any(part[:1] in ("+", "-") for part in raw)
    return [
        made
        for part in raw
        for made in _wrapped(part, width, roles.get(part[:1], "") if is_diff else "accent")
    ]


def _wrapped(text: str, width: int, role: str) -> list[Line]:
    """A line of code or a command in full. One that is too long goes on in the next, with its sign and
    further in."""
    if cells(text) <= width:
        return [line(Span(text, role), width=width)]
    lead = text[: len(text) - len(text.lstrip("+- "))]
    first, *rest = wrap_spans([Span(text[len(lead) :], role)], max(8, width - len(lead) - 4))
    made = [[Span(lead, role), *first], *([Span(f"{lead}    ", role), *part] for part in rest)]
    return [line(part, width=width) for part in made]


def _gain_lines(finding: Finding, width: int) -> list[Line]:
    speed = finding.speedup
    if speed is None:
        return [line(Span(text, "dim")) for text in wrap(_no_gain(finding), width)]
    note = f", {speed.note}" if speed.note else ""
    rate = "step rate" if finding.live else "step rate of the next run"
    told = [Span(gain(finding), "gain"), Span(f"  {rate}, likely (low–high){note}", "dim")]
    out = [line(part) for part in wrap_spans(told, width)]
    out += [scale(speed, min(width, 60))]
    return out + [line(Span(text, "dim")) for text in wrap(speed.why, width)] if speed.why else out


def _no_gain(finding: Finding) -> str:
    over = "its run has ended: nothing to gain now"
    return "not predicted: it removes a fault, not a cost" if finding.live else over


def scale(speed: Speedup, width: int) -> Line:
    """From ×1 to the best case, with the likely gain as a block inside its range."""
    top = max(speed.high, 1.05)
    room = width - 12
    if room < 8:
        return line()
    place = [round((value - 1) / (top - 1) * (room - 1)) for value in (speed.low, speed.likely, speed.high)]
    low, likely, high = (max(0, min(room - 1, at)) for at in place)
    cells = ["·"] * room
    cells[low : high + 1] = ["━"] * (high - low + 1)
    cells[likely] = "█"
    body = "".join(cells)
    return line(
        Span("×1 ", "dim"),
        Span(body[:low], "faint"),
        Span(body[low:], "good"),
        Span(f" {units.gain(top)}", "dim"),
    )


def realised(entries: Sequence[Entry], room: Room) -> list[Line]:
    """After the change: the predicted gain against the measured one."""
    if not entries:
        text = "after the change, gpumon compare BEFORE AFTER shows it here"
        return [
            section("Predicted and realised"),
            *(line("   ", Span(part, "dim")) for part in wrap(text, room.width - 4)),
            line(),
        ]
    lines = [section("Predicted and realised")]
    for entry in entries:
        inside = Span("✓ ", "good") if entry.inside else Span("◆ ", "warn")
        predicted = units.gain_range(entry.low, entry.likely, entry.high)
        what = f"predicted {predicted}, realised {units.gain(entry.realised)}"
        told = [inside, Span(what, "strong"), Span(f"  {entry.run} → {entry.after_run or entry.run}", "dim")]
        lines += [line("   ", part) for part in wrap_spans(told, room.width - 4, hang=2)]
    return [*lines, line()]
