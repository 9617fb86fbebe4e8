"""A past run turned back into snapshots, reassembled from the stored readings.

Only what was recorded is shown; a reading that was not stored is absent, not invented.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from monitor.model import facts
from monitor.model.gpu import Gpu, Source
from monitor.model.history import HistoryPage, RunRecord, Series
from monitor.model.host import Cpu, Host
from monitor.model.run import Phase, Rank, Run, Window
from monitor.model.snapshot import Snapshot

GPU_FIELDS = frozenset(
    ("utilization_ratio", "memory_used_bytes", "power_watts", "temperature_celsius", "sm_clock_hertz")
)
KEEP_SECONDS = 5.0
"""A reading is valid for at most this long, or for two intervals if those are longer."""


class Recording:
    """One run from start to end; `at` gives the snapshot at a moment."""

    def __init__(self, record: RunRecord, page: HistoryPage, cards: Sequence[Gpu] = ()) -> None:
        self.record = record
        self.start, self.end, self.step = page.start, page.end, max(1.0, page.seconds)
        self._cards = {card.uuid: card for card in cards}
        self._series = {(series.subject, series.field): series for series in page.series}
        self._gpus = [
            s for s in dict.fromkeys(series.subject for series in page.series) if s.startswith("gpu:")
        ]

    def at(self, time: float) -> Snapshot:
        """What was known at `time`."""
        findings = tuple(f for f in self.record.findings if f.since is None or f.since <= time)
        readings = Snapshot(
            seq=int(time - self.start),
            time=time,
            monotonic=time - self.start,
            interval_seconds=self.step,
            source=Source("simulated" if self._simulated else "nvml", detail="replayed from the history"),
            host=self._host(time),
            gpus=tuple(self._gpu(index, subject, time) for index, subject in enumerate(self._gpus)),
            runs=(self._run(time),),
            findings=findings,
        )
        return facts.complete(readings)

    @property
    def _simulated(self) -> bool:
        return any(card.simulated for card in self._cards.values())

    def value(self, subject: str, field: str, time: float) -> float | None:
        """The latest reading at `time` that is still valid."""
        series = self._series.get((subject, field))
        return None if series is None else _last(series, time, max(KEEP_SECONDS, 2 * self.step))

    def _gpu(self, index: int, subject: str, time: float) -> Gpu:
        uuid = subject.removeprefix("gpu:")
        known = self._cards.get(uuid)
        base = Gpu(known.index if known else index, uuid)
        if known is not None:
            base = msgspec.structs.replace(
                base,
                name=known.name,
                simulated=known.simulated,
                memory_total_bytes=known.memory_total_bytes,
                power_limit_watts=known.power_limit_watts,
                temperature_slowdown_celsius=known.temperature_slowdown_celsius,
                sm_clock_max_hertz=known.sm_clock_max_hertz,
            )
        seen = {field: self.value(subject, field, time) for field in GPU_FIELDS}
        return msgspec.structs.replace(base, **seen)

    def _host(self, time: float) -> Host:
        run = self.record.run
        cpu = self.value("host", "cpu_utilization_ratio", time)
        cores = run.config.get("cpu_count")
        made = (
            Cpu(cores=cores if isinstance(cores, int) else 1, utilization_ratio=cpu)
            if cpu is not None
            else None
        )
        return Host(run.hostname or "recorded", cpu=made)

    def _run(self, time: float) -> Run:
        run, subject = self.record.run, f"run:{self.record.run.id}"
        shares = {p.name: self.value(subject, f"phase_{p.name}_ratio", time) for p in run.phases}
        p50 = self.value(subject, "step_p50_seconds", time)
        phases = tuple(
            Phase(name, share, share * p50 if p50 else 0.0)
            for name, share in shares.items()
            if share is not None
        )
        past = tuple(window for window in run.timeline if window.start <= time)
        over = run.ended is not None and time >= run.ended
        return msgspec.structs.replace(
            run,
            state=run.state if over else "running",
            ended=run.ended if over else None,
            phases=phases,
            timeline=past,
            stalls=(),
            samples_per_second=self.value(subject, "samples_per_second", time),
            iterations_per_second=self.value(subject, "iterations_per_second", time),
            starved_ratio=self.value(subject, "starved_ratio", time),
            trend_ratio=None,
            step=msgspec.structs.replace(run.step, p50=p50, p95=past[-1].step_p95 if past else None),
            ranks=tuple(self._rank(rank, past, time) for rank in run.ranks),
        )

    def _rank(self, rank: Rank, past: Sequence[Window], time: float) -> Rank:
        steps = past[-1].first_step + past[-1].steps if past else 0
        loss = self.value(f"run:{self.record.run.id}", "loss", time) if rank.rank == 0 else None
        return Rank(
            rank.rank, rank.state, rank.pid, rank.local_rank, rank.hostname, rank.gpu_uuid, rank.device,
            steps=steps, loss=loss,
        )  # fmt: skip


def _last(series: Series, time: float, keep: float) -> float | None:
    at = bisect_right(series.time, time) - 1
    return series.mean[at] if at >= 0 and time - series.time[at] <= keep else None
