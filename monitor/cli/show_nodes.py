"""The machines and ranks of a run over many machines, as text."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.document import node_section
from monitor.model.run import Rank, Run
from monitor.model.units import ABSENT, ago, number, seconds, whole
from monitor.terminal import Terminal, table, wrapped

NODES = (*node_section.COLUMNS, "last step")
NODE_FIGURES = (*node_section.FIGURES, len(node_section.COLUMNS))
NODE_SPARE = (11, 9, 10, 3)
"""What a narrow terminal does without: last step, GPUs, busy, steps."""
RANKS = ("rank", "node", "state", "device", "steps", "step", "samples/s", "most in", "now in", "lost")
RANK_FIGURES = (4, 5, 6, 9)
RANK_SPARE = (9, 3, 8)


def nodes(run: Run, on: Terminal) -> Iterator[str]:
    """Each machine beside the others, then what the waiting costs."""
    yield f"nodes ({len(run.nodes)}; {whole(len(run.ranks))} of {whole(run.world_size)} ranks seen)"
    tones = [node.state for node in run.nodes]
    rows = [(*node_section.row(node), ago(node.last_step_time)) for node in run.nodes]
    yield table(NODES, rows, right=NODE_FIGURES, spare=NODE_SPARE, tones=tones, on=on)
    for text in node_section.costs(run.waste):
        yield from wrapped(text, on.width)
    yield ""


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
