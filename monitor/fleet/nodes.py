"""The machines of a run beside each other: who is slow, where, and what the waiting costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.ranks import known_by_devices, own_work, widest_phase
from monitor.fleet.join import node_names, node_states
from monitor.fleet.told import Told
from monitor.model.nodes import Node, NodeState, Waste
from monitor.model.run import Rank

SECONDS_AN_HOUR = 3600.0


def nodes_of(context: RunContext, told: Told) -> tuple[Node, ...]:
    """In the order of their first rank; each with its skew against the others."""
    names, states, own = node_names(told), node_states(told), own_work(context)
    hosts = {
        one.labels.get("instance", ""): one.labels.get("hostname") or None
        for one in told.infos("gpumon_run_info")
    }
    made = [
        replace(_node(context, told, names[instance], states.get(instance, "running"), own, instance),
                hostname=hosts.get(instance))
        for instance in names
    ]  # fmt: skip
    made.sort(key=lambda node: (node.ranks[:1] or (context.run.world_size,), node.name))
    return tuple(replace(node, skew_ratio=_skew(node, made)) for node in made)


def _node(
    context: RunContext, told: Told, name: str, state: NodeState, own: Mapping[int, float], instance: str
) -> Node:
    ranks = [rank for rank in context.run.ranks if rank.hostname == name]
    newest = max((rank.last_step_time for rank in ranks if rank.last_step_time is not None), default=None)
    steps = [rank.step.mean for rank in ranks if rank.step.mean is not None]
    here = {rank.rank: own[rank.rank] for rank in ranks if rank.rank in own}
    phase, extra = _widest(context, here)
    uses = _uses(told, instance)
    return Node(
        name,
        state,
        tuple(rank.rank for rank in ranks),
        instance,
        unreachable=instance in told.unreachable,
        last_step_time=newest,
        silent_seconds=None if newest is None else max(0.0, told.at - newest),
        steps=min((rank.steps for rank in ranks), default=None),
        step_seconds=fmean(steps) if steps else None,
        own_seconds=max(here.values(), default=None),
        least_own_seconds=min(here.values(), default=None),
        phase=phase,
        extra_seconds=extra,
        wait_share=_wait_share(context, own, here),
        gpus=len(uses),
        busy_ratio=fmean(uses) if uses else None,
    )


def _widest(context: RunContext, here: Mapping[int, float]) -> tuple[str | None, float | None]:
    if not here:
        return None, None
    return widest_phase(context, max(here, key=lambda rank: here[rank]))


def _uses(told: Told, instance: str) -> list[float]:
    cards = {
        one.labels.get("uuid", "")
        for one in told.now.get("gpumon_gpu_run", ())
        if one.labels.get("instance") == instance
    }
    return [told.use[instance, uuid] for uuid in cards if (instance, uuid) in told.use]


def _wait_share(context: RunContext, own: Mapping[int, float], here: Mapping[int, float]) -> float | None:
    if not here or not context.period:
        return None
    slowest = max(own.values())
    return min(1.0, fmean(slowest - seconds for seconds in here.values()) / context.period)


def _skew(node: Node, nodes: Sequence[Node]) -> float | None:
    """Against the median of the others."""
    others = sorted(one.own_seconds for one in nodes if one is not node and one.own_seconds)
    usual = others[len(others) // 2] if others else None
    return node.own_seconds / usual if node.own_seconds and usual else None


def waste_of(context: RunContext, told: Told) -> Waste:
    """Waiting over the whole run, from its counters; GPU-hours over the time that was asked about."""
    return Waste(_waiting_hours(context), told.held_gpu_hours, told.idle_gpu_hours)


def _waiting_hours(context: RunContext) -> float | None:
    """What each rank's own work leaves of the slowest one's, times its steps."""
    steps = {rank.rank: rank.steps for rank in context.run.ranks}
    whole = replace(context.run, ranks=tuple(map(_over_the_run, context.run.ranks)))
    recent = context if known_by_devices(context) else RunContext(context.snapshot, whole, context.policy)
    own = own_work(recent)
    if not own:
        return None
    slowest = max(own.values())
    return sum((slowest - seconds) * steps[rank] for rank, seconds in own.items()) / SECONDS_AN_HOUR


def _over_the_run(rank: Rank) -> Rank:
    """Its phases as means over all of its steps."""
    phases = tuple(
        replace(phase, mean_seconds=phase.total_seconds / rank.steps) for phase in rank.phases if rank.steps
    )
    return replace(rank, phases=phases)
