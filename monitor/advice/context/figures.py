"""The figures of one run under short names: configuration, steps, phases, hot lines.

Nothing here is guessed: anything unknown is None, and a rule that needs it stays silent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from typing import Any

from monitor.advice.context.hotspot import Hotspot, hotspot, together
from monitor.advice.context.machine import Point
from monitor.advice.context.work import Work, whole_evaluations, work
from monitor.model.gpu import Gpu
from monitor.model.host import Process
from monitor.model.policy import Policy
from monitor.model.run import Phase, Rank, Run, Stall
from monitor.model.snapshot import Snapshot

MANY_STEPS = 200
"""Enough steps for a verdict, however short they are."""
RARE_EXCESS = 0.5
"""The mean step must exceed the median by this share of a cause's own time before the median counts as a step
without the cause."""
NEIGHBOUR_BOUNDS = (0.9, 1.6)
"""Including its effect on neighbouring steps, a cause usually costs so many times its own time."""
MEDIAN_MARGIN = 1.02
"""A step without the cause may take up to this multiple of the median step."""
MOST_OF_STEP = 0.995
"""No cause takes more of a step than this: something of the step itself always remains."""


@dataclass(frozen=True)
class RunFigures:
    """One run, with its leading rank's figures under short names."""

    snapshot: Snapshot
    run: Run
    policy: Policy
    history: Sequence[Point] = field(default=())

    @cached_property
    def lead(self) -> Rank | None:
        """The lowest rank: the one whose configuration `Run.config` describes."""
        return min(self.run.ranks, key=lambda rank: rank.rank, default=None)

    @property
    def live(self) -> bool:
        return self.run.live

    def setting(self, *path: str) -> Any:
        """A value of the configuration probe; None if unknown."""
        value: Any = self.run.config
        for key in path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def count(self, *path: str) -> int | None:
        """An integer of the probe; anything else is unknown."""
        value = self.setting(*path)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def scalar(self, name: str) -> float | None:
        value = self.lead.scalars.get(name) if self.lead else None
        return value if value is not None and isfinite(value) else None

    @cached_property
    def has_cuda(self) -> bool:
        """Whether the model is on a GPU, as far as known."""
        device = (self.lead.device if self.lead else None) or self.setting("device") or ""
        return str(device).startswith(("cuda", "xpu")) or (device == "" and bool(self.gpus))

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        wanted = set(self.run.gpu_uuids) | {rank.gpu_uuid for rank in self.run.ranks if rank.gpu_uuid}
        return tuple(gpu for gpu in self.snapshot.gpus if gpu.uuid in wanted)

    @cached_property
    def processes(self) -> tuple[Process, ...]:
        return tuple(process for process in self.snapshot.processes if process.run == self.run.id)

    @cached_property
    def batch_size(self) -> int | None:
        known = self.run.batch_size or self.count("loader", "batch_size")
        if known is None and self.lead and self.lead.steps and self.lead.samples:
            known = round(self.lead.samples / self.lead.steps)
        return known or self.count("shapes", "rows") or None

    @cached_property
    def micro_batches(self) -> float:
        """Passes through the model for each update."""
        return max(1.0, self.run.micro_batches or 1.0)

    @cached_property
    def workers(self) -> int | None:
        return self.count("loader", "num_workers")

    @cached_property
    def cores(self) -> float | None:
        """Cores the run may use: the least of affinity, machine and container quota."""
        known = [self.count("cpu_affinity"), self.count("cpu_count")]
        host = self.snapshot.host
        known.append(host.cpu.cores if host.cpu else None)
        quota = host.cgroup.cpu_quota_cores
        limits = [float(value) for value in [*known, quota] if value]
        return min(limits) if limits else None

    @cached_property
    def steps(self) -> int:
        """Number of steady steps behind the figures."""
        return max(self.lead.step.count, self.lead.whole.count) if self.lead else 0

    @cached_property
    def reliable(self) -> bool:
        """Whether enough steady steps were read to judge step time."""
        if self.lead is None or self.period is None:
            return False
        total = self.lead.steps
        lost = self.lead.lost / total if total else 0.0
        long = self.steps * self.period >= self.policy.min_seconds or self.steps >= MANY_STEPS
        return self.steps >= self.policy.min_steps and long and lost <= self.policy.lost_share

    @cached_property
    def phases(self) -> dict[str, float]:
        """Seconds per step by phase, begin to begin, with stalls spread over the steps and our own cost
        removed."""
        if self.lead is None:
            return {}
        return {phase.name: max(0.0, phase.mean_seconds) for phase in self.lead.phases}

    @cached_property
    def period(self) -> float | None:
        """Mean seconds per step, with stalls spread over the steps."""
        total = sum(self.phases.values())
        if total > 0:
            return total
        return self.usual

    @cached_property
    def usual(self) -> float | None:
        """Seconds of a usual step, without stalls."""
        if self.lead is None:
            return None
        for times in (self.lead.step, self.lead.whole):
            if times.count and times.mean:
                return times.mean
        return None

    def seconds(self, phase: str) -> float:
        return self.phases.get(phase, 0.0)

    def share(self, phase: str) -> float:
        total = sum(self.phases.values())
        return self.seconds(phase) / total if total > 0 else 0.0

    def phase(self, name: str) -> Phase | None:
        return next((phase for phase in self.lead.phases if phase.name == name), None) if self.lead else None

    def stall(self, *kinds: str) -> Stall | None:
        """The largest stall of these kinds."""
        found = [stall for stall in self.run.stalls if stall.kind in kinds]
        return max(found, key=lambda stall: stall.total_seconds, default=None)

    def cost_with_neighbours(self, cost: float, most: float = NEIGHBOUR_BOUNDS[1]) -> float:
        """Seconds per step attributable to a cause that costs `cost` by itself, at most `most` times that. If
        most steps are without it, the median step shows what a step then takes, since the cause also slows
        its neighbours."""
        median = self.lead.step.p50 if self.lead else None
        if self.period is None or not median or self.period - median < RARE_EXCESS * cost:
            return cost
        seen = max(self.period - MEDIAN_MARGIN * median, NEIGHBOUR_BOUNDS[0] * cost)
        return min(seen, most * cost, MOST_OF_STEP * self.period)

    @cached_property
    def unmarked(self) -> bool:
        """Whether the loop marks its steps only, by `step()` or `log_iteration()`."""
        return "other" in self.phases and self.phases.keys() <= {"other", "between"}

    def _counted_as(self, phase: str) -> str:
        """The phase to which the records count what was seen in this one. If a loop marks its steps only, all
        is seen after one call and before the next, and most of it becomes `other` when that comes. An
        evaluation that the training learns from is played (`runs.meta`)."""
        if phase == "validate" and phase not in self.phases and "rollout" in self.phases:
            return "rollout"
        moved = self.unmarked and phase == "between" and self.seconds("other") > self.seconds("between")
        return "other" if moved else phase

    @cached_property
    def hotspots(self) -> tuple[Hotspot, ...]:
        raw = self.setting("hotspots")
        found = [hotspot(item) for item in raw] if isinstance(raw, list) else []
        spots = [replace(spot, phase=self._counted_as(spot.phase)) for spot in found if spot]
        return tuple(sorted(spots, key=lambda spot: -spot.share))

    @cached_property
    def work(self) -> tuple[Work, ...]:
        """The loop's work by statement, most expensive first."""
        raw = self.setting("work")
        read = [one for one in map(work, raw) if one] if isinstance(raw, list) else []
        found = [replace(one, phase=self._counted_as(one.phase)) for one in read]
        return tuple(sorted(whole_evaluations(found), key=lambda one: -self.hot_seconds(one)))

    def piece(self, spot: Hotspot) -> Work | None:
        """The piece of work a hot line belongs to."""
        same = [one for one in self.work if (one.file, one.line) == spot.piece]
        return next((one for one in same if one.phase == spot.phase), same[0] if same else None)

    def hot_function(
        self, *phases: str, where: Callable[[Hotspot], bool] = lambda spot: True
    ) -> Hotspot | None:
        """The user function on which these phases spend most, with the share of all its lines: a loop's time
        is spread over the lines of its body."""
        shares: dict[tuple[str, str, str], float] = {}
        for spot in self.hotspots:
            if spot.phase in phases and where(spot):
                key = (spot.phase, spot.file, spot.function)
                shares[key] = shares.get(key, 0.0) + spot.share
        if not shares:
            return None
        best = max(shares, key=lambda key: shares[key])
        lines = [spot for spot in self.hotspots if (spot.phase, spot.file, spot.function) == best]
        return together(lines)

    def hot(self, *phases: str, kinds: Sequence[str] = ()) -> Hotspot | None:
        """The heaviest user line of these phases, restricted to `kinds` if given."""
        for spot in self.hotspots:
            if spot.phase in phases and (not kinds or spot.kind in kinds):
                return spot
        return None

    def hot_seconds(self, spot: Hotspot | Work) -> float:
        """Seconds per step of this line or piece of work."""
        return spot.share * self.phases.get(spot.phase, 0.0)
