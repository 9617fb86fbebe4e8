"""One run: its figures, where the step goes, what happened over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.snapshot import Finding, Run, Window
from monitor.tui import format as show
from monitor.tui.text import Cell, Line, Span, clip, fit, line, spans, width_of
from monitor.tui.views.marks import run_mark, starving
from monitor.tui.views.remedy import section
from monitor.tui.views.runs import hanging, trend
from monitor.tui.widgets.graph import history, letter, nice, phase_bar, phase_order, role_of, stacked
from monitor.tui.widgets.panel import Room

GUTTER = 12
HOLD_SECONDS = 2.0
STALL_LETTERS = {"validate": "V", "checkpoint": "C", "recompile": "R", "gc": "G", "log": "L", "data": "D"}


def summary(run: Run, now: float, room: Room, found: tuple[Finding, ...] = ()) -> list[Line]:
    """Who it is, how fast it goes, and when it hangs: in what."""
    mark = run_mark(run, found)
    width = room.width - 3
    since = show.duration((run.ended or now) - run.started)
    facts = [
        f"{run.state} {since}",
        run.user,
        " ".join((run.script or run.command or "").split()),
        f"git {run.git_commit}" if run.git_commit else None,
    ]
    facts += [run.container, run.pod, f"slurm {run.slurm_job}" if run.slurm_job else None]
    head = line(
        Span(f" {mark.symbol} ", mark.role),
        Span(run.name, "strong"),
        Span("  " + " · ".join(f for f in facts if f), "dim"),
        width=room.width,
    )
    lines = [head, *_flow(_figures(run), room)]
    stuck = hanging(run)
    if run.state == "stalled" and stuck is not None:
        text = f"rank {stuck.rank} stands in {stuck.live_phase} for {show.duration(stuck.live_seconds)}"
        text += f"; usual step {show.seconds(run.step.p50)}"
        lines.append(line(Span(clip(f" ▲ {text}", width), "alarm")))
    return lines


def _flow(pairs: Sequence[tuple[str, Cell]], room: Room) -> list[Line]:
    """Name and value one after the other, in two lines at most."""
    lines: list[list[Span]] = [[Span("   ")]]
    for name, value in pairs:
        cell = [Span(f"{name} ", "dim"), *spans(value, "strong"), Span("   ")]
        if width_of(lines[-1]) + width_of(cell) - 2 > room.width:
            lines.append([Span("   ")])
        lines[-1] += cell
    return [line(parts, width=room.width) for parts in lines[:2]]


def _figures(run: Run) -> list[tuple[str, Cell]]:
    first = run.ranks[0] if run.ranks else None
    pairs: list[tuple[str, Cell]] = [
        ("step", show.count(first.steps if first else run.steps)),
        ("it/s", show.number(run.iterations_per_second)),
        ("samples/s", show.number(run.samples_per_second)),
        ("p50", show.seconds(run.step.p50)),
        ("p95", show.seconds(run.step.p95)),
        ("starved", Span(show.share(run.starved_ratio), "alarm" if starving(run) else "strong")),
        ("trend", trend(run.trend_ratio)),
        ("loss", show.number(first.loss if first else None)),
        ("epoch", show.count(first.epoch if first else None)),
        ("ranks", f"{len(run.ranks)}/{run.world_size}"),
        (
            "own cost",
            show.ABSENT
            if not first or first.overhead_ratio is None
            else f"{first.overhead_ratio * 100:.2g} %",
        ),
    ]
    if run.tokens_per_second:
        pairs.insert(3, ("tokens/s", show.number(run.tokens_per_second)))
    return pairs


def phases(run: Run, room: Room) -> list[Line]:
    """The step as one bar, and every phase with its times."""
    shares = {phase.name: phase.share for phase in run.phases}
    lines = [
        section("Where the step goes"),
        line("   ", *phase_bar(shares, room.width - 5, plain=room.plain)),
    ]
    head = ("phase", "share", "mean", "p50", "p95")
    lines.append(
        line(
            "   ",
            *(
                fit(Span(t, "head"), w, ">" if w < 13 else "<")
                for t, w in zip(head, (14, 7, 11, 11, 11), strict=True)
            ),
        )
    )
    known = {phase.name: phase for phase in run.phases}
    for name in phase_order(shares):
        phase = known[name]
        swatch = Span("  ", role_of(name)) if not room.plain else Span(letter(name) + " ")
        figures = (
            show.seconds(phase.mean_seconds),
            show.seconds(phase.p50_seconds),
            show.seconds(phase.p95_seconds),
        )
        lines.append(
            line(
                "   ",
                swatch,
                " ",
                fit(name, 11),
                fit(Span(show.percent(phase.share), "strong"), 7, ">"),
                *(fit(text, 11, ">") for text in figures),
            )
        )
    return [*lines, line()]


class Axis:
    """All graphs of a run share one: each window is the same cells wide in every one of them."""

    def __init__(self, windows: Sequence[Window], room: Room) -> None:
        width = max(8, room.width - GUTTER - 2)
        self.windows = list(windows[-width:])
        self.cells = max(1, width // len(self.windows)) if self.windows else 1
        self.width = self.cells * len(self.windows)

    def held(self, values: Sequence[float | None]) -> list[float | None]:
        """A reading taken once a tick stands for the short windows until the next one."""
        out: list[float | None] = []
        since = HOLD_SECONDS
        for window, value in zip(self.windows, values, strict=True):
            since = 0.0 if value is not None else since + window.seconds
            out.append(value if value is not None or since > HOLD_SECONDS or not out else out[-1])
        return out

    def spread(self, values: Iterable[float | None]) -> list[float | None]:
        return [value for value in values for _ in range(2 * self.cells)]


def waterfall(run: Run, room: Room, height: int = 8) -> list[Line]:
    """Phase shares over the whole run, the stalls below, and the time."""
    axis = Axis(run.timeline, room)
    if not axis.windows:
        return [section("Over time"), line(Span("   the first window is not complete yet", "dim")), line()]
    layers = stacked([window.phases for window in axis.windows], axis.width, height, plain=room.plain)
    lines = [section("Phases over time")]
    for index, layer in enumerate(layers):
        text = "100%" if index == 0 else "0%" if index == height - 1 else ""
        lines.append(line(fit(Span(text, "dim"), GUTTER - 1, ">"), " ", *layer))
    return [*lines, _times(axis), line()]


def _times(axis: Axis) -> Line:
    first, last = axis.windows[0], axis.windows[-1]
    left, right = show.clock(first.start), show.clock(last.start + last.seconds)
    return line(" " * GUTTER, Span(left + " " * max(1, axis.width - len(left) - len(right)) + right, "dim"))


def _stall_marks(axis: Axis) -> Line | None:
    """A letter under every window that held a stall: V validate, C checkpoint, R recompile."""
    if not any(window.stalls for window in axis.windows):
        return None
    marks = "".join(
        (_letter(window.stalls[0]) if window.stalls else "·").ljust(axis.cells) for window in axis.windows
    )
    return line(fit(Span("stalls", "dim"), GUTTER - 1, ">"), " ", Span(marks, "warn"))


def _stall_legend(axis: Axis, room: Room) -> list[Line]:
    kinds = dict.fromkeys(kind for window in axis.windows for kind in window.stalls)
    text = "  ".join(f"{_letter(kind)} {kind}" for kind in kinds)
    return [line(" " * GUTTER, Span(clip(text, room.width - GUTTER - 1), "dim"))] if kinds else []


def _letter(kind: str) -> str:
    return STALL_LETTERS.get(kind, kind[:1].upper() or "?")


def graph(
    title: str,
    note: str,
    axis: Axis,
    values: Sequence[float | None],
    room: Room,
    *,
    unit: str = "number",
    dots: Sequence[float | None] = (),
    height: int = 3,
    role: str = "info",
) -> list[Line]:
    """One braille graph over the run with its scale at the left; nothing when there is no value."""
    known = [value for value in (*values, *dots) if value is not None]
    if not known:
        return []
    top, low = nice(max(known)), min(0.0, min(known))
    rows = history(axis.spread(values), axis.width, height, top, low=low, dots=axis.spread(dots))
    say = {"seconds": show.seconds, "bytes": show.size, "number": show.number, "ratio": show.percent}[unit]
    lines = [line(Span(f" {title}", "title"), Span(f"  {note}", "dim"), width=room.width)]
    for index, text in enumerate(rows):
        label = say(top) if index == 0 else say(low) if index == height - 1 and height > 1 else ""
        lines.append(
            line(fit(Span(label if label != "0 s" else "0", "dim"), GUTTER - 1, ">"), " ", Span(text, role))
        )
    return lines


def graphs(run: Run, room: Room, height: int = 3) -> list[Line]:
    """Step time with its stalls, throughput, starved share, loss, memory: one under the other."""
    axis = Axis(run.timeline, room)
    if not axis.windows:
        return []
    ws = axis.windows
    mark = _stall_marks(axis)
    step = graph(
        "Step time",
        f"fill p50 {show.seconds(run.step.p50)}, dots p95 {show.seconds(run.step.p95)}",
        axis,
        [w.step_p50 for w in ws],
        room,
        unit="seconds",
        dots=[w.step_p95 for w in ws],
        height=height + 1,
    )
    parts = [
        [*step, *([mark, *_stall_legend(axis, room)] if mark and step else [])],
        graph(
            "Samples/s",
            show.number(run.samples_per_second),
            axis,
            [w.samples_per_second for w in ws],
            room,
            height=height,
            role="good",
        ),
        graph(
            "GPU use",
            "",
            axis,
            axis.held([w.gpu_utilization_ratio for w in ws]),
            room,
            unit="ratio",
            height=height,
            role="good",
        ),
        graph(
            "Loss",
            show.number(run.ranks[0].loss if run.ranks else None),
            axis,
            [w.loss for w in ws],
            room,
            height=height,
            role="accent",
        ),
        graph(
            "GPU memory",
            "",
            axis,
            axis.held([w.device_memory_bytes for w in ws]),
            room,
            unit="bytes",
            height=height,
        ),
        graph(
            "Host memory",
            "resident, with workers",
            axis,
            axis.held([w.rss_bytes for w in ws]),
            room,
            unit="bytes",
            height=height,
            role="dim",
        ),
    ]
    return [made for part in parts if part for made in (*part, line())]
