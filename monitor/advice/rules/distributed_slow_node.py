"""One machine of a run is slower than the others, and all wait for it.

Looks at: per machine the work of its ranks' own (everything but the wait in collectives): its fastest rank
    against the slowest of the usual machine. For runs put together from several machines (`--prometheus`).
Why: A collective ends when the last rank arrives. Where all ranks of one machine are late, the cause is that
    machine: its disk or network path to the data, its heat and clocks, other jobs on it.
Remedy: look at that machine, or leave it out.
Gain: the step with that machine at the common duration.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.ranks import known_by_devices, without_wait
from monitor.advice.prediction.gain import Bounds
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.groups import numbers
from monitor.model.nodes import Node

SAVED = Bounds(low=0.88, likely=0.97, high=1.0)
"""Share of the machine's extra time that is saved. Judgement, as for a straggling rank."""
ON_DEVICE = ("forward", "backward", "optimizer")
"""Phases in which a GPU does the work."""


@rule(
    "distributed.slow_node",
    "Slow node",
    suppresses=("distributed.straggler", "distributed.imbalance", "distributed.collective_wait"),
    bonus=0.6,
)
def check(run: RunContext) -> Advice | None:
    found = _slowest(run)
    if found is None or run.period is None:
        return None
    node, common = found
    own = node.least_own_seconds or 0.0
    cost = own - common
    if own < run.policy.straggler_ratio * common or cost < run.policy.straggler_share * run.period:
        return None
    if run.has_cuda and node.phase in ON_DEVICE and not known_by_devices(run):
        return None  # host time there is launching and waiting, not the machine's own work
    phase = node.phase or "its own work"
    return Advice(
        title=f"Slow node: {node.name} needs {units.seconds(own)} a step where the others need "
        f"{units.seconds(common)}",
        detail=f"rank{'s' if len(node.ranks) > 1 else ''} {numbers(node.ranks)}, "
        f"{units.seconds(node.extra_seconds)} more in {phase}",
        remedy=f"Look at {phase} on {node.name}: {_hint(phase)}",
        evidence={
            "node": node.name,
            "ranks": list(node.ranks),
            "phase": phase,
            "own_seconds": own,
            "common_seconds": common,
            "cost_share": cost / run.period,
            "nodes": len(run.run.nodes),
        },
        gain=SAVED.part_of(without_wait(run, cost)),
        because=f"the other machines wait {units.percent(cost / run.period)} of the step for it",
    )


def _slowest(run: RunContext) -> tuple[Node, float] | None:
    """The machine all of whose ranks are late, and what the usual one's slowest rank needs."""
    told = [node for node in run.run.nodes if node.least_own_seconds and node.own_seconds]
    if len(told) < 2:
        return None
    slowest = max(told, key=lambda node: node.least_own_seconds or 0.0)
    others = sorted(node.own_seconds or 0.0 for node in told if node is not slowest)
    return slowest, others[len(others) // 2]


def _hint(phase: str) -> str:
    if phase == "data":
        return "its path to the data, its disk, its cores; `gpumon status` there says what is busy."
    if phase in ON_DEVICE:
        return "GPUs slowed by heat or power, other jobs on its cores; `gpumon status` there says which."
    return "what runs there and not on the others."
