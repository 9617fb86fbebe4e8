"""Ranks of a live run are on machines that no longer report, or never did.

Looks at: ranks the run was launched with against those reported now, and machines that reported a rank of it
    and stopped. Only for runs put together from several machines (`--prometheus`).
Why: Without a rank every collective hangs until its timeout, and all other GPUs are held meanwhile. Or the
    machine is well and only its daemon is not scraped: then the picture lacks its ranks.
Remedy: look at that machine and its daemon; restart the run without it.
Gain: none; the run stands still, or is not wholly seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.groups import numbers
from monitor.model.nodes import Node


@rule("distributed.lost_nodes", "Lost nodes", steps=False)
def check(run: RunContext) -> Advice | None:
    lost = [node for node in run.run.nodes if node.state == "lost"]
    unseen = sorted(set(run.run.missing_ranks) - {rank for node in lost for rank in node.ranks})
    if not run.live or not (lost or unseen):
        return None
    here = len(run.run.nodes) - len(lost)
    return Advice(
        title=_title(lost, unseen, run.run.world_size, here),
        detail=f"ranks {numbers(unseen)} were never seen" if lost and unseen else "",
        remedy=_remedy(lost),
        evidence={
            "lost_nodes": [node.name for node in lost],
            "missing_ranks": list(run.run.missing_ranks),
            "world_size": run.run.world_size,
            "nodes": here,
        },
        severity="critical" if lost else "warning",
    )


def _title(lost: Sequence[Node], unseen: Sequence[int], world: int, here: int) -> str:
    if not lost:
        word = "rank" if len(unseen) == 1 else "ranks"
        return f"Ranks not seen: {word} {numbers(unseen)} of {world} are on machines that are not scraped"
    names = ", ".join(node.name for node in lost)
    ranks = numbers(rank for node in lost for rank in node.ranks)
    silent = min((node.silent_seconds for node in lost if node.silent_seconds is not None), default=None)
    since = "" if silent is None else f", no step from there for {units.duration(silent)}"
    word = "Lost node" if len(lost) == 1 else "Lost nodes"
    return f"{word}: {names} (ranks {ranks}){since}; {here} still report"


def _remedy(lost: Sequence[Node]) -> str:
    if not lost:
        return (
            "Add these machines to Prometheus's targets, or start `gpumon daemon` on them; what is said "
            "about the run leaves their ranks out."
        )
    if any(node.unreachable for node in lost):
        return "Prometheus cannot reach it: see whether the machine is up, then whether its daemon runs."
    return "Its daemon no longer reports the run: see whether the machine and the training there still live."
