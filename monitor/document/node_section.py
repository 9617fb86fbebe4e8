"""The part of a report about the machines of a run over many."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.catalog.dossier import Dossier
from monitor.document.markup import Markup, tag
from monitor.document.parts import section, table
from monitor.model.groups import numbers
from monitor.model.nodes import Node, Waste
from monitor.model.units import ABSENT, gain, number, percent, seconds, whole

COLUMNS = (
    "node",
    "state",
    "ranks",
    "steps",
    "step",
    "own work",
    "skew",
    "differs in",
    "waits",
    "GPUs",
    "busy",
)
FIGURES = (3, 4, 5, 6, 8, 9, 10)


def nodes(dossier: Dossier) -> Markup | None:
    """Each machine beside the others, then what the waiting costs."""
    run = dossier.run
    if not run.nodes:
        return None
    seen = f"{whole(len(run.ranks))} of {whole(run.world_size)} ranks seen"
    waste = [tag("p", text) for text in costs(run.waste)]
    return section("Machines", table(COLUMNS, map(row, run.nodes), figures=FIGURES), *waste, note=seen)


def row(node: Node) -> tuple[str, ...]:
    """A machine's figures, as reports and `gpumon show` have them."""
    return (
        node.name,
        "unreachable" if node.unreachable else node.state,
        numbers(node.ranks) if node.ranks else ABSENT,
        whole(node.steps) if node.steps is not None else ABSENT,
        seconds(node.step_seconds),
        seconds(node.own_seconds),
        gain(node.skew_ratio) if node.skew_ratio is not None else ABSENT,
        f"{node.phase} +{seconds(node.extra_seconds)}" if node.extra_seconds else ABSENT,
        percent(node.wait_share),
        whole(node.gpus) if node.gpus else ABSENT,
        percent(node.busy_ratio),
    )


def costs(waste: Waste | None) -> Iterator[str]:
    """What the waiting costs, in sentences; none if nothing is known."""
    if waste is None:
        return
    if waste.waiting_rank_hours is not None:
        yield f"Waiting for slower ranks: {number(waste.waiting_rank_hours)} rank-hours of the whole run."
    if waste.held_gpu_hours is not None:
        idle, held = number(waste.idle_gpu_hours), number(waste.held_gpu_hours)
        yield f"GPUs without a kernel: {idle} of {held} GPU-hours."
