"""The machines of a run over many, beside each other."""

from __future__ import annotations

from monitor.model import units
from monitor.model.groups import numbers
from monitor.model.nodes import Node, Waste
from monitor.model.run import Run
from monitor.tui.table import Column, chosen, heading, row
from monitor.tui.text import Cell, Line, Room, Span, line
from monitor.tui.views.parts import pairs_lines
from monitor.tui.views.symbols import RUN

NODES = (
    Column("node", "Nodes", 18, grow=1, most=40),
    Column("ranks", "ranks", 8),
    Column("step", "step", 8, ">", drop=3),
    Column("own", "own work", 9, ">"),
    Column("skew", "skew", 6, ">"),
    Column("phase", "differs in", 19, drop=1),
    Column("waits", "waits", 6, ">"),
    Column("busy", "busy", 5, ">", drop=2),
)


def nodes(run: Run, room: Room) -> list[Line]:
    """Each machine's own work against the others', and what the waiting costs."""
    if not run.nodes:
        return []
    layout = chosen(NODES, room.width - 2, 1)
    lines = [heading(layout, gap=1, lead=1)]
    lines += [row(layout, _cells(node), gap=1, lead=" ") for node in run.nodes]
    waste = pairs_lines(_waste(run.waste), room) if run.waste is not None else []
    return [*(Line(made.spans) for made in lines), *waste, line()]


def _cells(node: Node) -> dict[str, Cell]:
    lost = node.state == "lost"
    symbol = RUN["stalled" if node.state == "lost" else node.state]
    extra = f"{node.phase} +{units.seconds(node.extra_seconds)}" if node.extra_seconds else units.ABSENT
    return {
        "node": [symbol.span, Span(f" {node.name}", "alarm" if lost else "strong")],
        "ranks": numbers(node.ranks) if node.ranks else units.ABSENT,
        "step": units.seconds(node.step_seconds),
        "own": units.seconds(node.own_seconds),
        "skew": units.gain(node.skew_ratio),
        "phase": Span("lost", "alarm") if lost else extra,
        "waits": units.tight_percent(node.wait_share),
        "busy": units.tight_percent(node.busy_ratio),
    }


def _waste(waste: Waste) -> dict[str, str]:
    """Hours of one rank or GPU."""
    told = {
        "waited for slower ranks": waste.waiting_rank_hours,
        "GPU-hours had": waste.held_gpu_hours,
        "without a kernel": waste.idle_gpu_hours,
    }
    return {name: f"{units.number(hours)} h" for name, hours in told.items() if hours is not None}
