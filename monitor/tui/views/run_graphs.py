"""One run over time: phases, step time with its stalls, throughput, use, loss, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from monitor.language import word
from monitor.model import units
from monitor.model.run import Run
from monitor.tui.text import Line, Room, Span, clip, fit, line
from monitor.tui.views.parts import section
from monitor.tui.widgets.graph import history, round_up, stacked

GUTTER = 12
HOLD_SECONDS = 6.0
"""GPU and memory are read once per tick, of one of many runs less often; windows may be shorter than that."""
STALL_LETTERS = {"validate": "V", "checkpoint": "C", "recompile": "R", "gc": "G", "log": "L", "data": "D"}

Values = Sequence[float | None]


class Axis:
    """Shared by all graphs of a run: a window has the same cells in all of them, and together they fill the
    room."""

    def __init__(self, run: Run, room: Room) -> None:
        width = max(8, room.width - GUTTER - 2)
        silent = min(run.silent_windows, width // 2)
        self.windows = list(run.timeline[silent - width :])
        count = len(self.windows)
        self.width = width * count // (count + silent) if count else 0
        self.silent = width - self.width if count and silent else 0
        """Cells on the right in which there was no step, because the run hangs."""
        self.edges = [at * self.width // count for at in range(count + 1)] if count else [0]
        """Where each window begins, and where the last one ends."""

    @property
    def cells(self) -> list[int]:
        """How many cells each window has."""
        return [end - begin for begin, end in pairwise(self.edges)]

    def held(self, values: Values) -> Values:
        """Repeats a reading taken once per tick in the short windows until the next one."""
        out: list[float | None] = []
        since = HOLD_SECONDS
        for window, value in zip(self.windows, values, strict=True):
            since = 0.0 if value is not None else since + window.seconds
            out.append(value if value is not None or since > HOLD_SECONDS or not out else out[-1])
        return out

    def spread(self, values: Iterable[float | None]) -> Values:
        return [value for value, wide in zip(values, self.cells, strict=True) for _ in range(2 * wide)]


class Graph(NamedTuple):
    """One graph: what is plotted, in what unit, and what else its title says."""

    title: str
    note: str
    values: Values
    unit: Callable[[float | None], str] = units.number
    role: str = "info"
    dots: Values = ()


def waterfall(run: Run, room: Room, height: int = 8) -> list[Line]:
    """Phase shares over the whole run, above a time axis."""
    axis = Axis(run, room)
    if not axis.windows:
        return [section("Over time"), line(Span("   the first window is not complete yet", "dim")), line()]
    columns = [w.phases for w, wide in zip(axis.windows, axis.cells, strict=True) for _ in range(wide)]
    layers = stacked(columns, axis.width, height, plain=room.plain)
    lines = [line(Span(" Phases over time", "title"), Span(_stuck(run), "alarm"), width=room.width)]
    for index, layer in enumerate(layers):
        text = "100%" if index == 0 else "0%" if index == height - 1 else ""
        lines.append(line(_scale(text), *layer, _silence(axis)))
    return [*lines, _times(axis), line()]


def _stuck(run: Run) -> str:
    """How long there has been no step, if the run hangs."""
    hangs = run.current if run.silent_windows else None
    return f"  no step for {units.duration(hangs.seconds)}" if hangs else ""


def _scale(label: str) -> list[Span]:
    """The axis on the left, with a mark if there is a label."""
    return [*fit(Span(label, "dim"), GUTTER - 1, ">"), Span("┤" if label else "│", "faint")]


def _silence(axis: Axis) -> Span:
    return Span("╱" * axis.silent, "alarm")


def _times(axis: Axis) -> Line:
    first, last = axis.windows[0], axis.windows[-1]
    left, right = units.clock(first.start), units.clock(last.start + last.seconds)
    between = "─" * max(1, axis.width - len(left) - len(right))
    lead = Span(" " * (GUTTER - 1) + "└", "faint")
    return line(lead, Span(left, "dim"), Span(between, "faint"), Span(right, "dim"))


def graphs(run: Run, room: Room, height: int = 3) -> list[Line]:
    """One below the other; what was never measured gets no graph."""
    axis = Axis(run, room)
    if not axis.windows:
        return []
    step, *others = _graphs(run, axis)
    parts = [_drawn(step, axis, room, height + 1)]
    if parts[0]:
        parts[0] += _stalls(axis, room)
    parts += [_drawn(graph, axis, room, height) for graph in others]
    return [made for part in parts if part for made in (*part, line())]


def _graphs(run: Run, axis: Axis) -> list[Graph]:
    """The timeline is the first rank's; if a run has several, the graphs say so."""
    ws = axis.windows
    of_rank = f" of rank {run.ranks[0].rank}" if len(run.ranks) > 1 else ""
    p50, p95 = units.seconds(run.step.p50), units.seconds(run.step.p95)
    rate = units.number(run.samples_per_second)
    if of_rank:
        rate = f"{rate} in all ranks, graph{of_rank}"
    loss = units.number(run.ranks[0].loss if run.ranks else None)
    use, device, host = (
        axis.held([w.gpu_utilization_ratio for w in ws]),
        axis.held([w.device_memory_bytes for w in ws]),
        axis.held([w.rss_bytes for w in ws]),
    )
    p50s, p95s = [w.step_p50 for w in ws], [w.step_p95 for w in ws]
    return [
        Graph("Step time", f"fill p50 {p50}, dots p95 {p95}", p50s, units.seconds, dots=p95s),
        Graph(
            "Samples/s",
            rate,
            [w.samples_per_second for w in ws],
            role="good",
        ),
        Graph("GPU use", of_rank.strip(), use, units.tight_percent, "good"),
        Graph("Loss", loss, [w.loss for w in ws], role="accent"),
        Graph("GPU memory", f"held by tensors{of_rank}", device, units.size),
        Graph("Host memory", f"resident, the trainer{of_rank} without its workers", host, units.size, "dim"),
    ]


def _drawn(graph: Graph, axis: Axis, room: Room, height: int) -> list[Line]:
    """Braille over the run with the scale on the left; empty if there is no value."""
    known = [value for value in (*graph.values, *graph.dots) if value is not None]
    if not known:
        return []
    top, low = round_up(max(known)), min(0.0, min(known))
    dots = axis.spread(graph.dots) if graph.dots else ()
    rows = history(axis.spread(graph.values), axis.width, height, top, low=low, dots=dots)
    labels = [graph.unit(top), *[""] * (height - 2), "0" if low == 0 else graph.unit(low)][:height]
    return [
        line(Span(f" {word(graph.title)}", "title"), Span(f"  {graph.note}", "dim"), width=room.width),
        *(
            line(_scale(label), Span(text, "dim" if axis.silent else graph.role), _silence(axis))
            for label, text in zip(labels, rows, strict=True)
        ),
    ]


def _stalls(axis: Axis, room: Room) -> list[Line]:
    """A letter under every window with a stall (V validate, C checkpoint …), and a legend."""
    kinds = dict.fromkeys(kind for window in axis.windows for kind in window.stalls)
    if not kinds:
        return []
    letters = (_letter(window.stalls[0]) if window.stalls else "·" for window in axis.windows)
    marks = "".join(text.ljust(wide, "·") for text, wide in zip(letters, axis.cells, strict=True))
    legend = "  ".join(f"{_letter(kind)} {word(kind)}" for kind in kinds)
    return [
        line(fit(Span(word("stalls"), "dim"), GUTTER - 1, ">"), " ", Span(marks, "warn")),
        line(" " * GUTTER, Span(clip(legend, room.width - GUTTER - 1), "dim")),
    ]


def _letter(kind: str) -> str:
    return STALL_LETTERS.get(kind, kind[:1].upper() or "?")
