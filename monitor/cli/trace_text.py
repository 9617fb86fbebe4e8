"""A trace's diagnosis as text of at most 80 columns, most important first."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from monitor.model import units
from monitor.model.finding import Finding
from monitor.terminal import table
from monitor.traces.report import Device, Queue, Sync, TraceReport

WIDTH = 80
BAR = 24
BLOCKS = " ▁▂▃▄▅▆▇█"
SITES_SHOWN = 6
NAME_WIDTH = 40
MARKS = {"critical": "!!", "warning": "!", "hint": "·", "healthy": "ok"}
CAUSES = (
    ("data_seconds", "waiting for data"),
    ("copy_seconds", "inside blocking copies"),
    ("sync_seconds", "after synchronisations"),
    ("launch_seconds", "launching"),
    ("outside_seconds", "outside operators"),
    ("kernel_wait_seconds", "between queued kernels"),
    ("other_seconds", "other"),
)


def render(
    reports: Sequence[TraceReport], findings: Sequence[Finding], detailed: TraceReport
) -> Iterator[str]:
    yield from _wrapped(_headline(reports, detailed))
    yield ""
    for number, finding in enumerate(findings, 1):
        yield from _finding(number, finding)
    if len(reports) > 1:
        yield from _ranks(reports)
        yield f"Rank {detailed.rank} in detail ({Path(detailed.source).name})"
        yield ""
    yield from _details(detailed)


def _headline(reports: Sequence[TraceReport], detailed: TraceReport) -> str:
    device = detailed.devices[0]
    files = Path(detailed.source).name if len(reports) == 1 else f"{len(reports)} ranks"
    card = device.name or f"device {device.device}"
    idle = f"the device idles {units.percent(device.temporal.idle_ratio)} of the time"
    whose = "" if len(reports) == 1 else f" on rank {detailed.rank}"
    return f"{files}, {card}: {idle}{whose}"


def _finding(number: int, finding: Finding) -> Iterator[str]:
    gain = f"  at most {units.gain(finding.speedup.high)}" if finding.speedup else ""
    rank = f"  rank {finding.rank}" if finding.rank is not None else ""
    yield f"{number} {MARKS[finding.severity]} {finding.id}{rank}{gain}"
    yield from _wrapped(finding.title, "  ")
    yield from _wrapped(finding.why, "  ")
    if finding.remedy.summary:
        yield from _wrapped(finding.remedy.summary, "  → ", "    ")
    yield from (f"    {line}" for line in finding.remedy.change.splitlines())
    yield ""


def _wrapped(text: str, indent: str = "", later: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent if later is None else later
    )


def _ranks(reports: Sequence[TraceReport]) -> Iterator[str]:
    rows = []
    for report in reports:
        device = report.devices[0]
        time, talk = device.temporal, device.communication
        rows.append(
            (
                str(report.rank),
                units.seconds(time.span_seconds),
                units.percent(time.compute_ratio),
                units.percent(time.non_compute_ratio),
                units.percent(time.idle_ratio),
                units.percent(talk.exposed_ratio if talk else None),
                units.percent(talk.overlap_ratio if talk else None),
            )
        )
    head = ("rank", "span", "computing", "other work", "idle", "exposed comm.", "comm. hidden")
    yield table(head, rows, right=range(len(head)))
    yield ""


def _details(report: TraceReport) -> Iterator[str]:
    yield from _wrapped(_scope(report))
    for device in report.devices:
        if len(report.devices) > 1:
            yield ""
            yield f"Device {device.device}"
        yield from _device(device)
    for part in (_syncs(report.syncs), _outside(report), _copies(report), _kernels(report)):
        lines = list(part)
        if lines:
            yield ""
            yield from lines


def _scope(report: TraceReport) -> str:
    steps = report.steps
    what = f"{steps.in_window} of {steps.count} profiler steps" if steps else "no profiler steps in the trace"
    parts = [
        f"{units.seconds(report.window.seconds)} of device time",
        what,
        f"{units.whole(report.window.work)} kernels and copies",
        f"{units.whole(report.events)} events in the file",
    ]
    if steps:
        parts.append(f"a step takes {units.seconds(steps.mean_seconds)}")
    if not report.host_recorded:
        parts.append("operators not recorded")
    return ", ".join(parts)


def _device(device: Device) -> Iterator[str]:
    time = device.temporal
    yield from (
        _bar("computing", time.compute_ratio, time.compute_seconds),
        _bar("other work", time.non_compute_ratio, time.non_compute_seconds),
        _bar("idle", time.idle_ratio, time.idle_seconds),
    )
    yield ""
    yield "Idle time by cause"
    for field, name in CAUSES:
        part = getattr(device.causes, field)
        if part:
            yield _bar(name, time.share_of_span(part), part)
    yield from _wrapped(_categories(device), "  ")
    yield ""
    yield from _pace(device)


def _bar(name: str, ratio: float, length: float) -> str:
    full = round(ratio * BAR)
    bar = "█" * full + "·" * (BAR - full)
    return f"  {name:<24}{bar} {units.percent(ratio):>5}  {units.seconds(length):>8}"


def _categories(device: Device) -> str:
    """The categories known from Holistic Trace Analysis, as shares of the idle time."""
    idle, time = device.idle, device.temporal
    if not time.idle_seconds:
        return "no idle time"
    parts = (
        ("host wait", idle.host_wait_seconds),
        ("kernel wait", idle.kernel_wait_seconds),
        ("other", idle.other_seconds),
    )
    shares = (f"{name} {units.percent(time.share_of_idle(part))}" for name, part in parts)
    return "as categories: " + ", ".join(shares)


def _pace(device: Device) -> Iterator[str]:
    talk, pace = device.communication, device.launches
    if talk:
        yield from _wrapped(
            f"Communication {units.seconds(talk.seconds)}: {units.percent(talk.overlap_ratio)} hidden behind "
            f"computing, {units.seconds(talk.exposed_seconds)} exposed"
        )
    if pace:
        yield from _wrapped(
            f"Launches {units.whole(pace.count)}: one every {units.seconds(pace.period_median_seconds)}, "
            f"begin {units.seconds(pace.delay_median_seconds)} later, kernels take "
            f"{units.seconds(pace.kernel_median_seconds)} (medians); {units.percent(pace.late_ratio)} "
            "arrived when the stream had run empty"
        )
    if device.queue:
        yield from _queue(device.queue)


def _queue(queue: Queue) -> Iterator[str]:
    yield from _wrapped(
        f"Queue of launched work: {units.number(queue.time_mean)} long over time, {queue.max} at most, "
        f"empty {units.percent(queue.empty_ratio)} of the time"
    )
    top = max(queue.over_time, default=0.0) or 1.0
    yield "  " + "".join(BLOCKS[round(part / top * (len(BLOCKS) - 1))] for part in queue.over_time).rstrip()


def _syncs(syncs: Sequence[Sync]) -> Iterator[str]:
    if not syncs:
        return
    yield "Where the host waits for the device"
    rows = [
        (
            _short(" in ".join(filter(None, (site.operator, site.where))) or units.ABSENT, 32),
            _short(site.call.removeprefix("cuda").removeprefix("hip"), 18),
            str(site.count),
            units.seconds(site.wait_seconds),
            units.seconds(site.idle_after_seconds),
        )
        for site in syncs[:SITES_SHOWN]
    ]
    yield table(("where", "call", "times", "waited", "idle after"), rows, right=(2, 3, 4))
    if len(syncs) > SITES_SHOWN:
        yield f"… and {len(syncs) - SITES_SHOWN} more places (--json has all)"


def _outside(report: TraceReport) -> Iterator[str]:
    if not report.outside:
        return
    rows = [
        (_short(site.where or units.ABSENT, 50), str(site.count), units.seconds(site.idle_seconds))
        for site in report.outside[:SITES_SHOWN]
    ]
    yield table(("outside operators, device idle", "times", "idle"), rows, right=(1, 2))


def _copies(report: TraceReport) -> Iterator[str]:
    if not report.copies:
        return
    rows = [
        (
            one.direction,
            one.host_memory or units.ABSENT,
            units.whole(one.count),
            units.seconds(one.seconds),
            units.size(one.bytes),
            units.rate(one.bytes_per_second),
        )
        for one in report.copies
    ]
    yield table(("copies", "host memory", "times", "time", "size", "rate"), rows, right=(2, 3, 4, 5))


def _kernels(report: TraceReport) -> Iterator[str]:
    if not report.kernels:
        return
    cores = {True: "yes", False: "no", None: units.ABSENT}
    rows = [
        (
            _short(_plain(one.name), NAME_WIDTH),
            units.whole(one.count),
            units.seconds(one.mean_seconds),
            units.percent(one.share),
            cores[one.tensor_cores],
        )
        for one in report.kernels
    ]
    head = (
        f"heaviest of {units.whole(report.kernel_names)} kernels",
        "times",
        "mean",
        "share",
        "tensor cores",
    )
    yield table(head, rows, right=(1, 2, 3))
    units_used = report.tensor_cores
    if units_used and units_used.ratio is not None:
        yield from _wrapped(
            f"Tensor cores: {units.percent(units_used.ratio)} of the matrix kernels' time, by their names"
        )


def _plain(name: str) -> str:
    """A kernel's name without the parts all of them share."""
    for part in ("void ", "(anonymous namespace)::", "at::native::", "at::detail::"):
        name = name.replace(part, "")
    return name


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
