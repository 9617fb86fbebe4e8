"""One trace in, one report out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from monitor.model.errors import UserError
from monitor.traces import window
from monitor.traces.busy import busy_time, communication, temporal
from monitor.traces.copies import copies
from monitor.traces.host import Host, host_of
from monitor.traces.idle import Gaps, after_syncs, by_category, by_cause, outside_operators
from monitor.traces.intervals import length, union
from monitor.traces.kernels import collectives, heaviest, tensor_cores
from monitor.traces.queues import launch_bound, launches, queue
from monitor.traces.replay import saving
from monitor.traces.report import Device, Savings, Stream, TraceReport, Window
from monitor.traces.syncs import outside_sites, sync_sites
from monitor.traces.trace import NS, Card, Trace, Work


def analyse(trace: Trace, *, rank: int = 0, last_step: bool = False) -> TraceReport:
    """`rank` is used if the trace does not name its own; `last_step` includes the last profiler step."""
    steps = window.steps_of(trace)
    work = window.choose(trace, steps, last_step=last_step)
    host = host_of(trace)
    parts = [_DevicePart(device, members, host) for device, members in _by_device(work)]
    if not parts:
        raise UserError(
            f"{trace.source} has no GPU work in it",
            hint="record it with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
        )
    first = parts[0]
    kernels, names = heaviest(first.work)
    return TraceReport(
        source=trace.source,
        rank=rank if trace.rank is None else trace.rank,
        rank_known=trace.rank is not None,
        world_size=trace.world_size,
        events=trace.events,
        card=_card(trace, first.device),
        window=Window(first.span / NS, len(work), len(trace.work) - len(work)),
        steps=window.summary(steps, last_step=last_step),
        devices=tuple(part.report(_card(trace, part.device)) for part in parts),
        syncs=tuple(sync_sites(trace, host, first.window, first.after_syncs())),
        outside=tuple(outside_sites(trace, host, outside_operators(first.gaps, host))),
        copies=tuple(copies(first.work)),
        kernels=tuple(kernels),
        kernel_names=names,
        tensor_cores=tensor_cores(first.work),
        collectives=tuple(collectives(first.work, first.computing)),
        host_recorded=bool(trace.ranges),
        python_recorded=any(one.kind == "python" or one.stack for one in trace.ranges),
    )


def _by_device(work: Sequence[Work]) -> list[tuple[int, list[Work]]]:
    """The device with the most work first; devices with only zero-length work are left out."""
    groups = defaultdict(list)
    for one in work:
        groups[one.device].append(one)
    found = [(device, members) for device, members in groups.items() if busy_time(members)]
    return sorted(found, key=lambda entry: -length(busy_time(entry[1])))


def _card(trace: Trace, device: int) -> Card | None:
    return next((card for card in trace.cards if card.id == device), None)


class _DevicePart:
    """Collects what the report needs about one device of a trace."""

    def __init__(self, device: int, work: Sequence[Work], host: Host) -> None:
        self.device = device
        self.work = work
        self.host = host
        self.busy = busy_time(work)
        self.computing = busy_time(work, "compute")
        self.window = self.busy[0][0], self.busy[-1][1]
        self.span = self.window[1] - self.window[0]
        self.gaps = Gaps(work, self.busy)

    def after_syncs(self) -> dict[int, int]:
        return after_syncs(self.gaps, self.host)

    def report(self, card: Card | None) -> Device:
        streams = self._streams()
        causes = by_cause(self.gaps, self.host)
        pace = launches(streams.values())
        return Device(
            device=self.device,
            name=card.name if card else None,
            temporal=temporal(self.busy, self.computing),
            idle=self.gaps.by_category(),
            causes=causes,
            savings=self._savings(),
            communication=communication(self.work, self.computing, self.span),
            queue=queue(self.work),
            launches=pace,
            launch_bound=launch_bound(pace, causes.launch_seconds * NS / self.span),
            streams=tuple(_stream(stream, work) for stream, work in sorted(streams.items())),
        )

    def _savings(self) -> Savings:
        waits = union((call.begin, call.end) for call in self.host.syncs)
        removed = (self.host.data, self.host.copying, waits)
        return Savings(*(saving(self.work, self.busy, part) / NS for part in removed))

    def _streams(self) -> dict[int, list[Work]]:
        found = defaultdict(list)
        for one in self.work:
            found[one.stream].append(one)
        return found


def _stream(stream: int, work: Sequence[Work]) -> Stream:
    return Stream(stream, len(work), length(busy_time(work)) / NS, by_category(work), queue(work))
