"""What a trace says should change. No gain is claimed beyond what the trace shows: if a share s of the time
disappears, the rest takes 1 - s, so the speed-up is at most 1 / (1 - s)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from monitor.model.finding import Finding, Remedy, Speedup
from monitor.model.units import percent, seconds
from monitor.traces import remedies
from monitor.traces.ranks import late_rank
from monitor.traces.report import Device, TraceReport

WORTH_SAYING = 0.03
"""A smaller share of the time is noise between two runs."""
WARNING = 0.10
"""From here on it is a warning, and the trace is not healthy."""
BUSY_ENOUGH = 0.90
"""A judgement: a device this busy is well used."""
ENOUGH_WORK = 50
"""With fewer kernels and copies than this no gain is given: a few launches do not represent a run."""
TOO_LITTLE = "The trace is too short to name a gain."
FEW_TENSOR_CORES = 0.5
"""A judgement: below this share of matrix time on tensor cores, they are worth mentioning."""
MATRIX_SHARE = 0.2
"""Tensor cores are mentioned only if matrix kernels without them take this share of the time."""
TENSOR_CORE_CARDS = 7
"""Compute capability of Volta, the first generation with tensor cores."""


class Cause(Struct, frozen=True):
    """A share of one rank's time, and what would remove it."""

    id: str
    share: float
    title: str
    remedy: Remedy
    evidence: dict[str, Any]
    why: str
    whole: bool = True
    """Whether the remedy removes all of it. If not, the trace cannot say how much, so `likely` is 1."""


def diagnose(reports: Sequence[TraceReport]) -> list[Finding]:
    """Findings about the ranks of one job, largest possible gain first; a healthy job is reported as such."""
    found = [_worst(reports, look) for look in LOOKS]
    causes = sorted(filter(None, [*found, _late(reports)]), key=lambda entry: -entry[1].share)
    enough = min(report.window.work for report in reports) >= ENOUGH_WORK
    findings = [_finding(rank, cause, enough) for rank, cause in causes]
    tensor = filter(None, (_tensor_cores(report) for report in reports[:1]))
    return [*_overall(reports, findings), *findings, *tensor]


Look = Callable[[TraceReport, Device], Cause | None]


def _worst(reports: Sequence[TraceReport], look: Look) -> tuple[int | None, Cause] | None:
    """A cause on the rank where it costs most; the other ranks wait for that one."""
    causes = [(report.rank, cause) for report in reports if (cause := look(report, report.devices[0]))]
    if not causes:
        return None
    rank, worst = max(causes, key=lambda entry: entry[1].share)
    if worst.share < WORTH_SAYING:
        return None
    return (rank if len(reports) > 1 else None), worst


def _finding(rank: int | None, cause: Cause, enough: bool) -> Finding:
    return Finding(
        id=cause.id,
        severity="warning" if cause.share >= WARNING else "hint",
        title=cause.title,
        rank=rank,
        evidence={"removable_share": cause.share, **cause.evidence},
        remedy=cause.remedy,
        speedup=capped(cause.share, whole=cause.whole) if enough else None,
        why=cause.why if enough else f"{cause.why} {TOO_LITTLE}",
    )


def capped(share: float, *, whole: bool) -> Speedup | None:
    """The upper bound if `share` of the time disappears. None if nothing would remain: there is no bound."""
    if share >= 1.0:
        return None
    most = 1.0 / (1.0 - share)
    why = f"upper bound: if all {percent(share)} of the time is saved"
    return Speedup(1.0, most if whole else 1.0, most, why)


def _data(report: TraceReport, device: Device) -> Cause:
    idle = _share(device, device.causes.data_seconds)
    return Cause(
        "trace.input_wait",
        _share(device, device.savings.data_seconds),
        f"Waits for data: the device idles {percent(idle)} of the time while the loop waits for a batch",
        remedies.DATA,
        {"data_wait_idle_seconds": device.causes.data_seconds},
        "All of it is saved only if the loader keeps up; the trace does not show what its workers can do.",
    )


def _copies(report: TraceReport, device: Device) -> Cause:
    share = _share(device, device.savings.copy_seconds)
    pageable = [one for one in report.copies if one.direction == "HtoD" and one.host_memory == "pageable"]
    rates = {f"{one.host_memory}_bytes_per_second": one.bytes_per_second for one in pageable}
    return Cause(
        "trace.blocking_copies",
        share,
        f"Blocking copies cost up to {percent(share)} of the time: they hold the host, so it launches late",
        remedies.COPIES,
        {"copy_idle_seconds": device.causes.copy_seconds, **rates},
        "A copy from pageable memory holds the host until it is done, so nothing is launched meanwhile.",
    )


def _syncs(report: TraceReport, device: Device) -> Cause:
    idle = _share(device, device.causes.sync_seconds)
    sites = [site for site in report.syncs if site.idle_after_seconds > 0]
    places = [site.where or site.operator or site.call for site in sites[:3]]
    return Cause(
        "trace.sync",
        _share(device, device.savings.sync_seconds),
        f"Synchronisation: the device idles {percent(idle)} of the time after the host has waited for it"
        + (f", most after {sites[0].operator or sites[0].call}" if sites else ""),
        remedies.SYNC,
        {
            "sync_idle_seconds": device.causes.sync_seconds,
            "syncs": sum(site.count for site in report.syncs),
            "places": places,
        },
        "Waiting for the device costs nothing in itself; the empty queue afterwards does.",
    )


def _launching(report: TraceReport, device: Device) -> Cause | None:
    pace = device.launches
    if pace is None:
        return None
    share = _share(device, device.causes.launch_seconds)
    name = "Launch-bound" if device.launch_bound else "Late launches"
    return Cause(
        "trace.launch_bound" if device.launch_bound else "trace.late_launches",
        share,
        f"{name}: the device idles {percent(share)} of the time because the host launches too slowly "
        f"(a launch every {seconds(pace.period_median_seconds)}, kernels of "
        f"{seconds(pace.kernel_median_seconds)})",
        remedies.LAUNCH,
        {
            "launch_idle_seconds": device.causes.launch_seconds,
            "kernel_median_seconds": pace.kernel_median_seconds,
            "launch_period_median_seconds": pace.period_median_seconds,
            "launch_delay_median_seconds": pace.delay_median_seconds,
            "late_launches_ratio": pace.late_ratio,
        },
        "The profiler itself slows every launch, so without it the share is smaller.",
        whole=False,
    )


def _outside(report: TraceReport, device: Device) -> Cause:
    share = _share(device, device.causes.outside_seconds)
    places = [site.where for site in report.outside if site.where]
    return Cause(
        "trace.outside_operators",
        share,
        f"Outside operators: the device idles {percent(share)} of the time while the host is in no operator"
        + (f", most in {places[0]}" if places else ""),
        remedies.OUTSIDE if places else remedies.OUTSIDE_UNKNOWN,
        {"outside_idle_seconds": device.causes.outside_seconds, "places": places[:3]},
        "The host is then running user code, sleeping, or without a CPU; the trace cannot tell which.",
        whole=False,
    )


def _short_kernels(report: TraceReport, device: Device) -> Cause:
    share = _share(device, device.causes.kernel_wait_seconds)
    return Cause(
        "trace.short_kernels",
        share,
        f"Short kernels: the device's own delay between queued kernels takes {percent(share)} of the time",
        remedies.LAUNCH,
        {"kernel_wait_seconds": device.causes.kernel_wait_seconds},
        "A device takes a microsecond or more from one kernel to the next, however full its queue is.",
        whole=False,
    )


def _queued(report: TraceReport, device: Device) -> Cause:
    share = _share(device, device.causes.other_seconds)
    known = device.launches is not None
    reason = "although work is queued for it" if known else "and the trace does not show the launches"
    return Cause(
        "trace.idle_unexplained",
        share,
        f"The device idles {percent(share)} of the time {reason}",
        remedies.STREAMS if known else remedies.RECORD,
        {"other_idle_seconds": device.causes.other_seconds},
        "Queued work that does not begin waits for another stream, another process or a collective.",
        whole=False,
    )


def _communication(report: TraceReport, device: Device) -> Cause | None:
    talk = device.communication
    if talk is None:
        return None
    return Cause(
        "trace.exposed_communication",
        talk.exposed_ratio,
        f"Exposed communication: {percent(talk.exposed_ratio)} of the time goes to collectives with no "
        f"computing behind them ({percent(talk.overlap_ratio)} of communication is hidden)",
        remedies.COMMUNICATION,
        {"exposed_seconds": talk.exposed_seconds, "overlap_ratio": talk.overlap_ratio},
        "It includes waiting for ranks that come late, which more overlap does not remove.",
        whole=False,
    )


LOOKS: tuple[Look, ...] = (
    _data,
    _copies,
    _syncs,
    _launching,
    _outside,
    _short_kernels,
    _queued,
    _communication,
)


def _share(device: Device, part: float) -> float:
    return part / device.temporal.span_seconds


def _late(reports: Sequence[TraceReport]) -> tuple[int | None, Cause] | None:
    late = late_rank(reports)
    if late is None or late.wait_ratio < WORTH_SAYING:
        return None
    computing = {str(one.rank): one.devices[0].temporal.compute_seconds for one in reports}
    cause = Cause(
        "trace.late_rank",
        late.wait_ratio,
        f"Rank {late.rank} is late: every other rank waits for it for at least {percent(late.wait_ratio)} "
        f"of the time, in {late.last_in} of {late.collectives} collectives",
        remedies.LATE_RANK,
        {"wait_seconds": late.wait_seconds, "last_in": late.last_in, "compute_seconds": computing},
        "A collective ends for all ranks at once, so the rank with the shortest one was the last to arrive.",
    )
    return late.rank, cause


def _tensor_cores(report: TraceReport) -> Finding | None:
    """A hint without a gain: the trace does not show how much faster other kernels would be."""
    units, card = report.tensor_cores, report.card
    if units is None or units.ratio is None or card is None or (card.compute_major or 0) < TENSOR_CORE_CARDS:
        return None
    share = units.plain_seconds / report.devices[0].temporal.span_seconds
    if units.ratio >= FEW_TENSOR_CORES or share < MATRIX_SHARE:
        return None
    return Finding(
        id="trace.tensor_cores_unused",
        severity="hint",
        title="Judging by their names, matrix kernels without tensor cores take "
        f"{percent(share)} of the time",
        evidence={"plain_share": share, "tensor_core_ratio": units.ratio},
        remedy=remedies.TENSOR_CORES,
        why="The gain is unknown: the trace shows the time of these kernels, not of others.",
    )


def _overall(reports: Sequence[TraceReport], findings: Sequence[Finding]) -> list[Finding]:
    """The healthy verdict, if nothing is worth a warning."""
    busy = min(1.0 - report.devices[0].temporal.idle_ratio for report in reports)
    if busy < BUSY_ENOUGH or any(finding.severity != "hint" for finding in findings):
        return []
    which = "The device is" if len(reports) == 1 else "Every rank's device is"
    return [
        Finding(
            id="trace.healthy",
            severity="healthy",
            title=f"Healthy: {which} busy at least {percent(busy)} of the time, and nothing in the trace "
            "keeps it waiting for long",
            evidence={"busy_share": busy},
        )
    ]
