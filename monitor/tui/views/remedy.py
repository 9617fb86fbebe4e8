"""One finding in full: what is measured, why it matters, what to change, what that gains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from monitor.snapshot import Finding, Speedup
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.text import Block, Line, Span, clip, fit, line, wrap
from monitor.tui.views.findings import concerns, gain
from monitor.tui.views.marks import SEVERITY
from monitor.tui.widgets.panel import Room

if TYPE_CHECKING:
    from monitor.store.ledger import Entry


def preview(frame: Frame, host: HostFrame, finding: Finding, room: Room) -> Block:
    """The fix of the chosen finding, beside the list."""
    width = room.width - 2
    head = line(Span(" Fix", "title"), Span(f"  {finding.remedy.summary}", "strong"), width=room.width)
    rows = [
        *_indent(diff_lines(finding.remedy.change, width - 2)),
        line(),
        *_indent(_gain_lines(finding, width - 3)),
    ]
    return Block(
        (head,), tuple(rows) if finding.remedy.summary else (line(Span("   nothing to fix", "dim")),)
    )


def about(frame: Frame, host: HostFrame, finding: Finding, room: Room) -> list[Line]:
    """Title, whom it concerns, why it matters, the evidence."""
    mark = SEVERITY[finding.severity]
    width = room.width - 3
    since = f" · for {show.duration(frame.now.wall - finding.since)}" if finding.since else ""
    facts = f"{mark.word} · {finding.id} · {concerns(frame, host, finding)}{since}"
    titles = wrap(finding.title, width)
    leads = [Span(f" {mark.symbol} ", mark.role), *(Span("   ") for _ in titles[1:])]
    lines = [line(lead, Span(text, mark.role)) for lead, text in zip(leads, titles, strict=True)]
    lines += [line("   ", Span(clip(facts, width), "dim")), line()]
    if finding.why:
        lines += [
            section("Why it matters"),
            *(line("   ", text) for text in wrap(finding.why, width)),
            line(),
        ]
    return [*lines, section("Evidence"), *evidence(finding, room), line()]


def section(title: str) -> Line:
    return line(Span(f" {title}", "title"))


def evidence(finding: Finding, room: Room) -> Iterable[Line]:
    """Every number the rule looked at, with its unit."""
    if not finding.evidence:
        yield line(Span("   no numbers given", "dim"))
        return
    names = {key: show.label(key) for key in finding.evidence}
    wide = min(34, max(len(name) for name in names.values()) + 2)
    for key, value in finding.evidence.items():
        text = show.value_of(key, value)
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
    """Added and removed lines: the sign in front says it, the colour repeats it."""
    roles = {"+": "add", "-": "del", "@": "accent"}
    raw = text.rstrip("\n").split("\n") if text else []
    is_diff = any(part[:1] in ("+", "-") for part in raw)
    return [
        line(Span(fit_text(part, width), roles.get(part[:1], "") if is_diff else "accent")) for part in raw
    ]


def fit_text(text: str, width: int) -> str:
    return clip(text, width).ljust(width)


def _gain_lines(finding: Finding, width: int) -> list[Line]:
    speed = finding.speedup
    if speed is None:
        return [line(Span("not predicted: it removes a fault, not a cost", "dim"))]
    out = [line(Span(gain(finding), "gain"), Span("  step rate, likely (low–high)", "dim"))]
    out += [scale(speed, min(width, 60))]
    return out + [line(Span(text, "dim")) for text in wrap(speed.why, width)] if speed.why else out


def scale(speed: Speedup, width: int) -> Line:
    """From ×1 to the best case: the likely gain as a mark inside its range."""
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
        Span("×1 ", "dim"), Span(body[:low], "faint"), Span(body[low:], "good"), Span(f" ×{top:.1f}", "dim")
    )


def realised(entries: Sequence[Entry], room: Room) -> list[Line]:
    """After the change: what was predicted against what was measured."""
    if not entries:
        text = "after the change, gpumon compare BEFORE AFTER shows it here"
        return [
            section("Predicted and realised"),
            line("   ", Span(clip(text, room.width - 4), "dim")),
            line(),
        ]
    lines = [section("Predicted and realised")]
    for entry in entries:
        if entry.realised is None:
            continue
        mark = Span("✓ ", "good") if entry.low <= entry.realised <= entry.high else Span("◆ ", "warn")
        what = f"predicted {show.gain(entry.low, entry.likely, entry.high)}, realised ×{entry.realised:.2f}"
        lines.append(
            line(
                "   ",
                mark,
                Span(what, "strong"),
                Span(f"  {entry.run} → {entry.after_run or entry.run}", "dim"),
                width=room.width,
            )
        )
    return [*lines, line()]
