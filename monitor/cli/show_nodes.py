"""The machines and ranks of a run over many machines, as text."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.model.groups import numbers
from monitor.model.nodes import Node, Waste
from monitor.model.run import Rank, Run
from monitor.model.units import ABSENT, ago, gain, number, percent, seconds, whole
from monitor.terminal import Terminal, table, wrapped

NODES = (
    "node", "state", "ranks", "steps", "step", "own work", "skew", "differs in", "waits", "GPUs", "busy",
    "last step",
)  # fmt: skip
NODE_FIGURES = (3, 4, 5, 6, 8, 9, 10, 11)
NODE_SPARE = (11, 9, 10, 3)
"""What a narrow terminal does without: last step, GPUs, busy, steps."""
RANKS = ("rank", "node", "state", "device", "steps", "step", "samples/s", "most in", "now in", "lost")
RANK_FIGURES = (4, 5, 6, 9)
RANK_SPARE = (9, 3, 8)


def nodes(run: Run, on: Terminal) -> Iterator[str]:
    """Each machine beside the others, then what the waiting costs."""
    yield f"nodes ({len(run.nodes)}; {whole(len(run.ranks))} of {whole(run.world_size)} ranks seen)"
    tones = [node.state for node in run.nodes]
    rows = [_node(node) for node in run.nodes]
    yield table(NODES, rows, right=NODE_FIGURES, spare=NODE_SPARE, tones=tones, on=on)
    if run.waste is not None:
        for text in _waste(run.waste):
            yield from wrapped(text, on.width)
    yield ""


def _node(node: Node) -> tuple[str, ...]:
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
        ago(node.last_step_time),
    )


def _waste(waste: Waste) -> Iterator[str]:
    if waste.waiting_rank_hours is not None:
        yield f"waiting for slower ranks: {number(waste.waiting_rank_hours)} rank-hours of the whole run"
    if waste.held_gpu_hours is not None:
        idle, held = number(waste.idle_gpu_hours), number(waste.held_gpu_hours)
        yield f"GPUs without a kernel: {idle} of {held} GPU-hours"


def ranks(run: Run, on: Terminal) -> str:
    rows = [_rank(rank) for rank in run.ranks]
    return table(RANKS, rows, right=RANK_FIGURES, spare=RANK_SPARE, on=on)


def _rank(rank: Rank) -> tuple[str, ...]:
    most = rank.phases[0] if rank.phases else None
    return (
        str(rank.rank),
        rank.hostname or ABSENT,
        rank.state,
        rank.device or ABSENT,
        whole(rank.steps),
        seconds(rank.step.mean),
        number(rank.samples_per_second),
        f"{most.name} {seconds(most.mean_seconds)}" if most else ABSENT,
        f"{rank.live_phase} {seconds(rank.live_seconds)}" if rank.live_phase else ABSENT,
        whole(rank.lost),
    )
