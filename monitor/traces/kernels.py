"""The heaviest kernels, and which matrix kernels use tensor cores, judging by their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from monitor.model.kernel_names import is_matrix, on_tensor_cores
from monitor.traces.intervals import Intervals, length_within
from monitor.traces.report import Collective, Kernel, TensorCores
from monitor.traces.trace import NS, Work, WorkKind

HEAVIEST = 10


def heaviest(work: Iterable[Work]) -> tuple[list[Kernel], int]:
    """The heaviest kernels and how many different ones there are; copies and fills are excluded."""
    groups = defaultdict(list)
    for one in work:
        if one.kind != "memory":
            groups[one.name, one.kind].append(one.end - one.begin)
    whole = sum(map(sum, groups.values())) or 1
    rows = [_row(name, kind, lengths, whole) for (name, kind), lengths in groups.items()]
    return sorted(rows, key=lambda row: -row.seconds)[:HEAVIEST], len(rows)


def _row(name: str, kind: WorkKind, lengths: list[int], whole: int) -> Kernel:
    seconds = sum(lengths) / NS
    return Kernel(
        name=name,
        kind=kind,
        count=len(lengths),
        seconds=seconds,
        mean_seconds=seconds / len(lengths),
        share=sum(lengths) / whole,
        tensor_cores=on_tensor_cores(name) if kind == "compute" else None,
    )


def tensor_cores(work: Iterable[Work]) -> TensorCores | None:
    """Time of matrix kernels by unit; None if there are none."""
    totals = {True: 0, False: 0, None: 0}
    units: dict[str, bool | None] = {}
    matrix: dict[str, bool] = {}
    for one in work:
        if one.kind != "compute":
            continue
        if one.name not in units:
            units[one.name] = on_tensor_cores(one.name)
            matrix[one.name] = is_matrix(one.name)
        if matrix[one.name]:
            totals[units[one.name]] += one.end - one.begin
    told = totals[True] + totals[False]
    if not told and not totals[None]:
        return None
    return TensorCores(
        tensor_seconds=totals[True] / NS,
        plain_seconds=totals[False] / NS,
        unknown_seconds=totals[None] / NS,
        ratio=totals[True] / told if told else None,
    )


def collectives(work: Iterable[Work], computing: Intervals) -> list[Collective]:
    """In execution order, which is the same on every rank."""
    return [
        Collective(
            one.name.partition("(")[0],
            (one.end - one.begin) / NS,
            (one.end - one.begin - length_within(computing, (one.begin, one.end))) / NS,
        )
        for one in work
        if one.kind == "communication"
    ]
