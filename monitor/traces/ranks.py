"""Several ranks of one job: which one the others wait for."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.traces.report import LateRank, TraceReport


def comparable(reports: Sequence[TraceReport]) -> bool:
    """Whether all ranks ran the same collectives in the same order."""
    orders = {tuple(one.name for one in report.collectives) for report in reports}
    return len(reports) > 1 and len(orders) == 1 and orders != {()}


def late_rank(reports: Sequence[TraceReport]) -> LateRank | None:
    """The rank that costs the others most; None if that cannot be determined."""
    if not comparable(reports):
        return None
    candidates = [_cost(reports, at) for at in range(len(reports))]
    return max(candidates, key=lambda late: late.wait_seconds)


def _cost(reports: Sequence[TraceReport], suspect: int) -> LateRank:
    """How long the others wait in collectives in which the suspect arrived last."""
    waits = {at: 0.0 for at in range(len(reports)) if at != suspect}
    last_in = 0
    for together in zip(*(report.collectives for report in reports), strict=True):
        shortest = together[suspect].seconds
        if any(together[at].seconds <= shortest for at in waits):
            continue
        last_in += 1
        for at in waits:
            waits[at] += min(together[at].seconds - shortest, together[at].exposed_seconds)
    least = min(waits, key=lambda at: waits[at])
    return LateRank(
        rank=reports[suspect].rank,
        collectives=len(reports[suspect].collectives),
        last_in=last_in,
        wait_seconds=waits[least],
        wait_ratio=waits[least] / reports[least].devices[0].temporal.span_seconds,
    )
