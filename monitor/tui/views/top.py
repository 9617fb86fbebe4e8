"""The two lines on top of every screen: where we are and how fresh it is; and the answer."""

from __future__ import annotations

from monitor.snapshot import Finding, Gpu, Run, Snapshot
from monitor.tui import format as show
from monitor.tui.frame import Frame, HostFrame
from monitor.tui.text import Block, Line, Span, clip, fit, line, width_of, wrap
from monitor.tui.views.marks import FEEDING, SEVERITY, Mark, gpu_mark, runs_on
from monitor.tui.widgets.panel import Room

LINKS = {
    "live": Mark("●", "live", "good"),
    "stale": Mark("◌", "stale", "warn"),
    "down": Mark("✕", "disconnected", "alarm"),
    "waiting": Mark("◌", "waiting", "dim"),
}


def header(frame: Frame, room: Room, crumb: str = "") -> Block:
    """One line: name, host, what it has, and at the right how current all this is."""
    right = _status(frame)
    left = [Span(" gpumon ", "title"), *_crumb(crumb), *_hosts(frame)]
    space = room.width - width_of(right) - 1
    return Block((line(fit(left, max(0, space)), Span(" "), right, width=room.width),))


def _crumb(crumb: str) -> list[Span]:
    return [Span("▸ ", "faint"), Span(f"{crumb}  ", "strong")] if crumb else []


def _hosts(frame: Frame) -> list[Span]:
    if frame.several:
        answering = sum(host.link == "live" for host in frame.hosts)
        return [Span(f"{answering} of {len(frame.hosts)} hosts answer", "dim")]
    snapshot = frame.hosts[0].snapshot if frame.hosts else None
    if snapshot is None:
        return [Span(frame.hosts[0].label if frame.hosts else "", "dim")]
    return [Span(snapshot.host.hostname, "strong"), Span("  " + " · ".join(_facts(snapshot)), "dim")]


def _facts(snapshot: Snapshot) -> list[str]:
    facts = [_cards(snapshot.gpus)] if snapshot.gpus else ["no GPU"]
    cpu, memory = snapshot.host.cpu, snapshot.host.memory
    if cpu is not None:
        facts.append(f"CPU {show.share(cpu.utilization_ratio)} of {cpu.cores}")
    if memory is not None:
        facts.append(f"RAM {show.of(memory.used_bytes, memory.total_bytes)}")
    if snapshot.source.driver_version:
        facts.append(f"driver {snapshot.source.driver_version}")
    return facts


def _cards(gpus: tuple[Gpu, ...]) -> str:
    names = {gpu.name for gpu in gpus}
    name = (names.pop() or "GPU").removeprefix("NVIDIA ") if len(names) == 1 else "GPUs"
    return f"{len(gpus)} × {name}"


def _status(frame: Frame) -> list[Span]:
    out: list[Span] = []
    if frame.simulated:
        out += [Span(" simulated ", "badge"), Span(" ")]
    if any(host.mode == "own" for host in frame.hosts):
        out += [Span("own readings ", "dim")]
    if frame.note:
        out += [Span(frame.note + " ", "accent")]
    if frame.paused:
        out += [Span("‖ paused ", "warn")]
    out += _freshness(frame)
    return [*out, Span(show.clock(frame.now.wall) + " ", "dim")]


def _freshness(frame: Frame) -> list[Span]:
    worst = max(frame.hosts, key=lambda h: ("live", "waiting", "stale", "down").index(h.link), default=None)
    if worst is None or (worst.mode == "replay" and worst.link == "live"):
        return []
    mark = LINKS[worst.link]
    if frame.several and not worst.current:
        silent = sum(not host.current for host in frame.hosts)
        return [mark.span, Span(f" {silent} silent ", mark.role)]
    age = f" {show.duration(worst.age)}" if worst.age is not None and not worst.current else ""
    return [mark.span, Span(f" {mark.word}{age} ", mark.role if mark.role != "good" else "dim")]


def answer(frame: Frame, room: Room) -> Block:
    """Is this GPU well used, and if not, why, and what to do: one line, two when it is narrow."""
    mark, what, fix = verdict(frame)
    width = room.width - 4
    lead, role = Span(f" {mark.symbol} ", mark.role), "" if mark.role == "dim" else mark.role
    if not any(host.current for host in frame.hosts):
        return Block(
            rows=(line(lead, Span(clip(what, width), role)), line("   ", Span(clip(fix, width), "stale")))
        )
    if len(what) + len(fix) + 2 <= width:
        return Block(rows=(line(lead, Span(what, role), f"  {fix}", width=room.width),))
    first, *rest = wrap(what, width)
    second = squeeze(fix, width) if fix else " ".join(rest)
    shown = first if not rest or not fix else clip(what, width)
    return Block(rows=(line(lead, Span(shown, role)), line("   ", clip(second, width))))


def squeeze(fix: str, width: int) -> str:
    """The fix in one line: what gives way is its description, never the predicted gain."""
    text, sep, gain = fix.rpartition(", predicted ")
    return clip(fix, width) if not sep else clip(text, width - len(sep) - len(gain)) + sep + gain


def verdict(frame: Frame) -> tuple[Mark, str, str]:
    """The mark, what is the case, and what to do about it."""
    if frame.hosts and not any(host.current for host in frame.hosts):
        return _silent(frame)
    found = [(h, f) for h, f in frame.findings() if h.current and f.severity in ("critical", "warning")]
    if found:
        host, finding = min(found, key=lambda pair: pair[1].severity != "critical")
        return SEVERITY[finding.severity], _cause(frame, host, finding), _fix(finding)
    return _calm(frame)


def _silent(frame: Frame) -> tuple[Mark, str, str]:
    """No host is current: that is the answer, and what was last known is said to be old."""
    host = max(frame.hosts, key=lambda h: h.age or 0.0)
    mark = LINKS[host.link]
    if host.link == "waiting":
        return mark, "Waiting for the first readings…", ""
    if host.snapshot is None:
        return mark, f"{host.label} does not answer.", host.error or ""
    old = show.duration(host.age)
    last = next((f.title for f in host.snapshot.findings if f.severity != "healthy"), "nothing found")
    return mark, f"{host.label} has sent nothing for {old}: what follows is old.", f"{old} ago: {last}"


def _cause(frame: Frame, host: HostFrame, finding: Finding) -> str:
    """ "GPU 0 31 % busy — starved by data loading (62 % of the step)"."""
    gpu, run = _subject(host, finding)
    where = f"{host.label}: " if frame.several else ""
    if gpu is None or run is None or not finding.id.startswith(FEEDING):
        return f"{where}{finding.title.rstrip('.')}."
    phase = "data" if finding.id.startswith("input.") else "transfer"
    part = next((p.share for p in run.phases if p.name == phase), None)
    cause = "data loading" if phase == "data" else "host-to-device copies"
    tail = f" ({show.share(part)} of the step)" if part is not None else ""
    return f"{where}GPU {gpu.index} {show.share(gpu.utilization_ratio)} busy — starved by {cause}{tail}."


def _subject(host: HostFrame, finding: Finding) -> tuple[Gpu | None, Run | None]:
    """The run a finding is about and the first GPU it computes on."""
    assert host.snapshot is not None
    run = next((r for r in host.snapshot.runs if r.id == finding.run), None)
    for gpu in host.snapshot.gpus:
        if gpu.uuid == finding.gpu or (finding.gpu is None and run and run in runs_on(gpu, host.snapshot)):
            return gpu, run
    return None, run


def _fix(finding: Finding) -> str:
    if not finding.remedy.summary:
        return ""
    text = f"Fix: {finding.remedy.summary.rstrip('.')}"
    gain = finding.speedup
    return text if gain is None else f"{text}, predicted {show.gain(gain.low, gain.likely, gain.high)}"


def _calm(frame: Frame) -> tuple[Mark, str, str]:
    snapshots = [host.snapshot for host in frame.hosts if host.snapshot]
    healthy = next((f for _, f in frame.findings() if f.severity == "healthy"), None)
    if healthy is not None:
        return SEVERITY["healthy"], f"{healthy.title}.", ""
    if any(True for _ in frame.runs()):
        return SEVERITY["healthy"], "Nothing to complain about yet: runs are being watched.", ""
    return _empty(snapshots)


def _empty(snapshots: list[Snapshot]) -> tuple[Mark, str, str]:
    blind = next((s.source for s in snapshots if not s.gpus and s.source.detail), None)
    fix = "Start one: gpumon run -- python train.py"
    if blind is not None:
        return Mark("○", "no GPU", "dim"), f"No GPU: {blind.detail} No training run.", fix
    idle = sum(gpu_mark(gpu, s).word == "idle" for s in snapshots for gpu in s.gpus)
    total = sum(len(s.gpus) for s in snapshots)
    return Mark("○", "idle", "dim"), f"No training run; {idle} of {total} GPUs idle.", fix


def silent_hosts(frame: Frame) -> list[HostFrame]:
    """Hosts that need a line of their own because their readings are old or missing."""
    return [h for h in frame.hosts if not h.current and (frame.several or h.snapshot is not None)]


def unreachable(frame: Frame, room: Room) -> list[Line]:
    """A line for each such host, so that none is silently missing or taken for current."""
    out = []
    for host in silent_hosts(frame):
        mark = LINKS[host.link]
        age = f", last readings {show.duration(host.age)} old" if host.age is not None else ""
        why = host.error or ("no answer yet" if host.snapshot is None else "")
        text = f"{host.label} {mark.word}{age}{f': {why}' if why else ''}"
        out.append(line(Span(f" {mark.symbol} ", mark.role), clip(text, room.width - 4), width=room.width))
    return out
