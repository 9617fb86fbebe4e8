"""The answer: is this GPU well used, and if not, why, and what to do?"""

from __future__ import annotations

from typing import NamedTuple

from monitor.language import said
from monitor.model import units
from monitor.model.finding import SERIOUS, Finding, Starved
from monitor.model.snapshot import Snapshot
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.line_budget import TALL, Wants
from monitor.tui.text import Block, Line, Room, Span, cells, clip, line, width_of, wrap, wrap_spans
from monitor.tui.views.header import LINKS
from monitor.tui.views.symbols import SEVERITY, STOPS, Symbol

CAUSES = {"data": "data loading", "transfer": "host-to-device copies"}
IDLE = Symbol("○", "idle", "dim")
NO_RUN = "No training run now."
LOW = 18
"""On screens with fewer lines than this, the answer gets two."""


class Answer(NamedTuple):
    symbol: Symbol
    what: str
    """Which run or GPU, and what its state is."""
    fix: str = ""
    command: str = ""
    """The command to type, if the fix is a command."""
    gain: str = ""


def wants(frame: Frame, room: Room) -> Wants:
    """As many lines as the full text takes; on a low screen a fixed number, so that nothing moves."""
    least, most = (1, 4) if room.height >= TALL else (2, 3) if room.height >= LOW else (2, 2)
    return Wants((max(least, min(most, len(_lines(frame, room.width)))),), spaced=True)


def block(frame: Frame, room: Room) -> Block:
    made = _lines(frame, room.width)
    if len(made) > room.height:
        made = _short(frame, room)
    return Block(rows=tuple(made[: max(1, room.height)]))


def _lines(frame: Frame, width: int) -> list[Line]:
    """The statement and the fix, on one line if they fit, otherwise below each other, wrapped."""
    answer = answer_of(frame)
    role = "" if answer.symbol.role == "dim" else answer.symbol.role
    lead, fix = Span(f" {answer.symbol.char} ", answer.symbol.role), _fix_spans(answer, frame)
    length = cells(said(answer.what)) + width_of(fix)
    if _current(frame) and length + 6 <= width:
        return [line(lead, Span(answer.what, role), "  ", fix, width=width)]
    first, *rest = wrap(answer.what, width - 4)
    below = [[Span(text, role)] for text in rest] + wrap_spans(fix, width - 4)
    return [line(lead, Span(first, role)), *(line("   ", part) for part in below)]


def _short(frame: Frame, room: Room) -> list[Line]:
    """If there is not room for everything: the fix gets the last line, and its gain is never cut."""
    answer, width = answer_of(frame), room.width - 4
    role = "" if answer.symbol.role == "dim" else answer.symbol.role
    what = wrap(answer.what, width)
    most = max(1, room.height - bool(answer.fix))
    shown = what if len(what) <= most else [*what[: most - 1], clip(" ".join(what[most - 1 :]), width)]
    leads = [Span(f" {answer.symbol.char} ", answer.symbol.role), *(Span("   ") for _ in shown[1:])]
    fix = shorten(answer.fix, answer.command or answer.gain, width)
    lines = [line(lead, Span(text, role)) for lead, text in zip(leads, shown, strict=True)]
    return [*lines, line("   ", Span(fix, "" if _current(frame) else "stale"))]


def _fix_spans(answer: Answer, frame: Frame) -> list[Span]:
    if not _current(frame):
        return [Span(answer.fix, "stale")] if answer.fix else []
    parts = (Span(answer.fix), Span(answer.command, "accent"), Span(answer.gain, "gain"))
    return [Span(said(text), role) for text, role in parts if text]


def _current(frame: Frame) -> bool:
    return any(host.current for host in frame.hosts)


def shorten(fix: str, end: str, width: int) -> str:
    """The fix on one line: the description is cut, never the predicted gain or the command."""
    end = said(end)
    return clip(fix, max(0, width - cells(end))) + clip(end, width)


def answer_of(frame: Frame) -> Answer:
    if frame.hosts and not any(host.current for host in frame.hosts):
        return _silent(frame)
    found = [(h, f) for h, f in frame.findings() if h.current and f.newsworthy and f.severity in SERIOUS]
    if found:
        host, finding = min(found, key=lambda pair: (pair[1].severity != "critical", not pair[1].live))
        return _answer(frame, host, finding)
    return _calm(frame)


def _answer(frame: Frame, host: HostFrame, finding: Finding) -> Answer:
    symbol = SEVERITY[finding.severity]
    command = f": {finding.remedy.command}" if finding.remedy.command and finding.remedy.summary else ""
    return Answer(symbol, _statement(frame, host, finding), _fix(finding), command, _gain(finding))


def _statement(frame: Frame, host: HostFrame, finding: Finding) -> str:
    """ "lab-07 resnet: GPU 0 is 31 % busy — starved by data loading": starts with what it is about."""
    about = [host.label] if frame.several else []
    if finding.starved is not None:
        return f"{' '.join([*about, finding.subject])}: {said(f'{_starved(finding.starved)}.')}"
    title = finding.brief.rstrip(STOPS)
    about += [] if finding.subject in title else [finding.subject]
    sentence = said(f"{title}.")
    return f"{' '.join(about)} — {sentence}" if about else sentence


def _silent(frame: Frame) -> Answer:
    """No host is current: that is the answer, and the last known readings are marked as old."""
    host = max(frame.hosts, key=lambda h: h.age or 0.0)
    symbol = LINKS[host.link]
    if host.link == "waiting":
        return Answer(symbol, "Waiting for the first readings…")
    if host.snapshot is None:
        return Answer(symbol, f"{host.label} does not answer.", host.error or "")
    return Answer(symbol, *_last_known(host, host.snapshot))


def _last_known(host: HostFrame, snapshot: Snapshot) -> tuple[str, str]:
    old = units.duration(host.age)
    last = next((f.brief for f in snapshot.findings if f.severity != "healthy"), "nothing found")
    return f"{host.label} has sent nothing for {old}: what follows is old.", f"{old} ago: {last}"


def _starved(starved: Starved) -> str:
    """ "GPU 0 is 31 % busy — starved by data loading (62 % of the step)"."""
    cause = CAUSES.get(starved.phase, starved.phase)
    share = f" ({units.percent(starved.share)} of the step)" if starved.share is not None else ""
    busy = units.percent(starved.utilization_ratio)
    return f"GPU {starved.gpu_index} is {busy} busy — starved by {cause}{share}"


def _fix(finding: Finding) -> str:
    return f"Fix: {finding.remedy.summary.rstrip(STOPS)}" if finding.remedy.summary else ""


def _gain(finding: Finding) -> str:
    gain = finding.speedup
    if gain is None or not finding.remedy.summary:
        return ""
    note = f", {gain.note}" if gain.note else ""
    return f", predicted {units.gain_range(gain.low, gain.likely, gain.high)}{note}"


def _calm(frame: Frame) -> Answer:
    live = [(h, f) for h, f in frame.findings() if f.live]
    hint = next(((h, f) for h, f in live if h.current and f.severity == "hint"), None)
    if hint is not None:
        return _answer(frame, *hint)
    healthy = next(((h, f) for h, f in live if f.severity == "healthy"), None)
    if healthy is not None:
        return Answer(SEVERITY["healthy"], _statement(frame, *healthy))
    if any(run.live for _, run in frame.runs()):
        return Answer(SEVERITY["healthy"], "No problem found yet: the runs are being watched.")
    return _past(frame)


def _past(frame: Frame) -> Answer:
    """Without a live run: what was found in the one that ended, as history. It promises nothing now."""
    over = next(((h, f) for h, f in frame.findings() if h.current and not f.live), None)
    if over is None:
        return _without_runs([host.snapshot for host in frame.hosts if host.snapshot])
    host, finding = over
    about = f"{host.label} {finding.subject}" if frame.several else finding.subject
    fix = "" if finding.severity == "healthy" else finding.remedy.summary.rstrip(".")
    what = f"{about} has ended. Found in it: {finding.brief.rstrip('.')}."
    return Answer(IDLE, what, f"For the next run: {fix}" if fix else "")


def _without_runs(snapshots: list[Snapshot]) -> Answer:
    blind = next((s.source for s in snapshots if not s.gpus and s.source.detail), None)
    start = "Start one: gpumon run -- python train.py"
    if blind is not None:
        return Answer(IDLE, f"No GPU: {blind.detail} No training run now.", start)
    gpus = [gpu for snapshot in snapshots for gpu in snapshot.gpus]
    idle = sum(gpu.condition == "idle" for gpu in gpus)
    if len(gpus) == 1:
        return Answer(IDLE, "No training run now; the GPU is idle." if idle else NO_RUN, start)
    return Answer(IDLE, f"No training run now; {idle} of {len(gpus)} GPUs idle." if gpus else NO_RUN, start)
