"""What the live training runs demand of simulated cards: how busy, how much memory, which process.

The use of a simulated card is the run's own device-busy share. A run on the CPU has no device events; its
share of forward + backward + optimizer stands for how busy a GPU would have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from monitor.model.run import Rank, Run
from monitor.model.snapshot import Snapshot

COMPUTE_PHASES = frozenset({"forward", "backward", "optimizer"})
CONTEXT_BYTES = 480 << 20
WORKSPACE_BYTES = 1 << 30
SAMPLE_BYTES = 8 << 20
"""Typical sizes: a CUDA context, library workspaces, and the activations of one image."""
STATES_PER_PARAMETER = 4
"""Weights, gradients and two moments of an Adam-like optimizer."""
TRANSFER_SHARE_UNKNOWN = 0.02
"""A guess for runs that do not report their copies."""
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Load:
    """One rank on a card."""

    pid: int
    busy: float
    memory: int
    transfer: float
    tensor: bool
    ranks: int


def loads_by_card(snapshot: Snapshot | None, uuids: list[str], seats: dict[Key, int]) -> list[list[Load]]:
    """The loads of every card. `seats` remembers which rank sits on which card, from tick to tick."""
    cards: list[list[Load]] = [[] for _ in uuids]
    live = dict(_live_ranks(snapshot))
    for gone in seats.keys() - live.keys():
        del seats[gone]
    for key, (run, rank) in sorted(live.items()):
        if key not in seats:
            seats[key] = _seat(rank, uuids, seats)
        cards[seats[key]].append(_load(run, rank))
    return cards


def _live_ranks(snapshot: Snapshot | None) -> list[tuple[Key, tuple[Run, Rank]]]:
    if snapshot is None:
        return []
    alive = ("running", "stalled")
    runs = [run for run in snapshot.runs if run.state in alive]
    return [((run.id, rank.rank), (run, rank)) for run in runs for rank in run.ranks if rank.state in alive]


def _seat(rank: Rank, uuids: list[str], seats: Mapping[Key, int]) -> int:
    """The card the rank itself names, else its local rank's, else the emptiest one."""
    if rank.gpu_uuid in uuids:
        return uuids.index(rank.gpu_uuid)
    taken = list(seats.values())
    wanted = (rank.local_rank if rank.local_rank is not None else rank.rank) % len(uuids)
    emptiest = min(range(len(uuids)), key=lambda index: (taken.count(index), index))
    return wanted if taken.count(wanted) <= taken.count(emptiest) else emptiest


def _load(run: Run, rank: Rank) -> Load:
    shares = {phase.name: phase.share for phase in rank.phases}
    return Load(
        pid=rank.pid,
        busy=_busy(rank, shares),
        memory=_memory(run, rank),
        transfer=shares.get("transfer", TRANSFER_SHARE_UNKNOWN),
        tensor=_reduced_precision(run.config),
        ranks=run.world_size,
    )


def _busy(rank: Rank, shares: Mapping[str, float]) -> float:
    if rank.state != "running" or _waiting(rank):
        return 0.0
    measured = rank.device_times.busy_ratio
    ratio = measured if measured is not None else sum(shares.get(name, 0.0) for name in COMPUTE_PHASES)
    return min(1.0, max(0.0, ratio))


def _waiting(rank: Rank) -> bool:
    """The open phase does not compute and lasts far longer than a step: nothing reaches the device."""
    if rank.live_seconds is None or rank.live_phase in COMPUTE_PHASES:
        return False
    return rank.live_seconds > max(1.0, 3 * (rank.step.mean or 0.0))


def _memory(run: Run, rank: Rank) -> int:
    """What the allocator reports, else an estimate from model and batch."""
    reserved = rank.scalars.get("cuda.reserved_bytes")
    if reserved:
        return CONTEXT_BYTES + int(reserved)
    parameters = _number(_section(run.config, "model").get("parameter_bytes"))
    batch = SAMPLE_BYTES * (run.batch_size or 1)
    return int(CONTEXT_BYTES + WORKSPACE_BYTES + STATES_PER_PARAMETER * parameters + batch)


def _reduced_precision(config: Mapping[str, Any]) -> bool:
    precision = _section(config, "precision")
    return bool(precision.get("autocast") or precision.get("matmul_tf32"))


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A section of the probe; runs are untrusted input, so it may be anything."""
    value = config.get(name)
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0
