"""What a rule sees: one run with its figures put into words a rule needs, or the whole machine.

Nothing here guesses: what is not known is None, and a rule that needs it abstains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from os.path import basename
from typing import Any

from monitor.advice.policy import Policy
from monitor.advice.whatif import StepModel
from monitor.snapshot import Gpu, Phase, Process, Rank, Run, Snapshot, Stall

WORK_PHASES = ("forward", "backward", "optimizer", "transfer")
SIDE_PHASES = ("validate", "checkpoint", "log", "grad_norm", "sync")
MANY_STEPS = 200
"""Steps that are enough however short they are."""
SAMPLE_MAKERS = ("__getitem__", "__getitems__", "__next__", "__iter__")
FIXED_PHASES = ("optimizer", "zero_grad", "grad_norm", "log", "sync")


@dataclass(frozen=True, slots=True)
class Caller:
    """A place in the user's code from which a hot line was reached."""

    function: str
    file: str
    line: int
    code: str = ""

    @property
    def place(self) -> str:
        return f"{basename(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A line of the user's code and its share of a phase."""

    phase: str
    function: str
    file: str
    line: int
    share: float
    seconds: float | None
    kind: str
    code: str = ""
    """The line itself."""
    calls: float | None = None
    """How often it runs in a step."""
    inside: str = ""
    """The library function most of it is spent in."""
    callers: tuple[Caller, ...] = ()
    """The user's frames around it, innermost first."""
    constant: str = ""
    """The function it belongs to that returned the same in every step looked at."""
    random: bool = False
    """It makes a sample that is drawn at random."""
    fixed: bool = False
    """In a forward pass, and made from nothing that changes from step to step."""
    no_grad: bool = False
    """Under `no_grad`: nothing is learnt from it."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Its own function and those it was called from, without their classes."""
        names = (self.function, *(caller.function for caller in self.callers))
        return tuple(name.rpartition(".")[2] for name in names)

    @property
    def call(self) -> Caller | None:
        """Where its function was called."""
        own = (self.file, self.function)
        return next((one for one in self.callers if (one.file, one.function) != own), None)

    @property
    def place(self) -> str:
        """ "dataset.py:41"."""
        return f"{basename(self.file)}:{self.line}" if self.file else self.function

    @property
    def is_loop(self) -> bool:
        """The line that asks for the next batch: what is spent there is spent in the library."""
        return self.code.startswith(("for ", "while ")) or "next(" in self.code

    @property
    def in_data_set(self) -> bool:
        """A line of the data set's own code rather than the line that asks for the batch."""
        asked = any(name in SAMPLE_MAKERS for name in self.functions)
        return asked or (not self.is_loop and self.function != "<module>")

    @property
    def short(self) -> str:
        """ "`decode` (dataset.py:41)", for a second mention."""
        name = self.function.rpartition(".")[2]
        known = name and name != "<module>" and name not in SAMPLE_MAKERS
        return f"`{name}` ({self.place})" if known else f"the line at {self.place}"

    @property
    def words(self) -> str:
        """`x = self.scaler.transform(x)` (dataset.py:41, in `Windows.__getitem__`)."""
        owner = f", in `{self.function}`" if self.function and self.function != "<module>" else ""
        if not self.code:
            return f"`{self.function}` ({self.place})" if self.function else self.place
        shown = self.code if len(self.code) <= 70 else self.code[:69] + "…"
        return f"`{shown}` ({self.place}{owner})"


@dataclass(frozen=True, slots=True)
class Point:
    """One tick of the past, kept by the engine for what only shows over time."""

    time: float
    steps: int
    rss_bytes: int | None
    device_bytes: int | None
    step_p50: float | None
    sm_clock: float | None
    throttled: frozenset[str]
    swap_bytes_per_second: float | None
    other_cpu: float | None = None
    """Cores that processes outside the run kept busy."""


@dataclass(frozen=True)
class RunContext:
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
        return self.run.state in ("running", "stalled")

    def setting(self, *path: str) -> Any:
        """A value of the configuration probe, None when it is not known."""
        value: Any = self.run.config
        for key in path:
            if not isinstance(value, dict):
                return None
            value = value.get(key)
        return value

    def count(self, *path: str) -> int | None:
        """A whole number of the probe; anything else is unknown."""
        value = self.setting(*path)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def scalar(self, name: str) -> float | None:
        value = self.lead.scalars.get(name) if self.lead else None
        return value if value is not None and isfinite(value) else None

    @cached_property
    def has_cuda(self) -> bool:
        """The model is on a GPU (as far as known)."""
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
        return known or None

    @cached_property
    def workers(self) -> int | None:
        return self.count("loader", "num_workers")

    @cached_property
    def cores(self) -> float | None:
        """Cores the run may use: affinity, machine, container quota, whichever is least."""
        known = [self.count("cpu_affinity"), self.count("cpu_count")]
        host = self.snapshot.host
        known.append(host.cpu.cores if host.cpu else None)
        quota = host.cgroup.cpu_quota_cores
        limits = [float(value) for value in [*known, quota] if value]
        return min(limits) if limits else None

    @cached_property
    def steps(self) -> int:
        """Steady steps behind the figures."""
        return max(self.lead.step.count, self.lead.whole.count) if self.lead else 0

    @cached_property
    def reliable(self) -> bool:
        """Enough steady steps were read to speak about step time."""
        if self.lead is None or self.period is None:
            return False
        total = self.lead.steps
        lost = self.lead.lost / total if total else 0.0
        long = self.steps * self.period >= self.policy.min_seconds or self.steps >= MANY_STEPS
        return self.steps >= self.policy.min_steps and long and lost <= self.policy.lost_share

    @cached_property
    def phases(self) -> dict[str, float]:
        """Seconds a step per phase, begin to begin, stalls spread over the steps, our own cost out."""
        if self.lead is None:
            return {}
        return {phase.name: max(0.0, phase.mean_seconds) for phase in self.lead.phases}

    @cached_property
    def period(self) -> float | None:
        """Seconds a step takes on average, stalls spread over the steps."""
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
        """Stalls of these kinds, the largest."""
        found = [stall for stall in self.run.stalls if stall.kind in kinds]
        return max(found, key=lambda stall: stall.total_seconds, default=None)

    @cached_property
    def hotspots(self) -> tuple[Hotspot, ...]:
        raw = self.setting("hotspots")
        found = [_hotspot(item) for item in raw] if isinstance(raw, list) else []
        return tuple(sorted((spot for spot in found if spot), key=lambda spot: -spot.share))

    def hot_function(
        self, *phases: str, where: Callable[[Hotspot], bool] = lambda spot: True
    ) -> Hotspot | None:
        """The user function these phases spend most in, at its heaviest line, with the share of all its
        lines: a loop's time is spread over the lines of its body."""
        shares: dict[tuple[str, str, str], float] = {}
        for spot in self.hotspots:
            if spot.phase in phases and where(spot):
                key = (spot.phase, spot.file, spot.function)
                shares[key] = shares.get(key, 0.0) + spot.share
        if not shares:
            return None
        best = max(shares, key=lambda key: shares[key])
        lines = [spot for spot in self.hotspots if (spot.phase, spot.file, spot.function) == best]
        line = next((spot for spot in lines if not spot.code.startswith(("def ", "return"))), lines[0])
        return replace(line, share=min(1.0, shares[best]))

    def hot(self, *phases: str, kinds: Sequence[str] = ()) -> Hotspot | None:
        """The heaviest user line of these phases, of these kinds when any are named."""
        for spot in self.hotspots:
            if spot.phase in phases and (not kinds or spot.kind in kinds):
                return spot
        return None

    def hot_seconds(self, spot: Hotspot) -> float:
        """Seconds a step this line takes."""
        return spot.share * self.phases.get(spot.phase, 0.0)

    @cached_property
    def model(self) -> StepModel:
        """The step for `whatif`: phases, loader, cores."""
        parts = {name: seconds for name, seconds in self.phases.items() if name != "data"}
        wait = self.seconds("data")
        workers = self.workers or 0
        fixed = {name: parts.get(name, 0.0) for name in FIXED_PHASES}
        return StepModel(
            parts=parts,
            wait=wait,
            work=self.load_work or wait,
            work_cpu=self.load_cpu_share,
            workers=workers,
            cores=self.cores or 1.0,
            threads=self.main_threads,
            handover=self._handover,
            fixed=fixed,
            worker_slowdown=self.policy.worker_slowdown,
            worker_seconds=self.policy.worker_batch_seconds,
            crowded=self.policy.crowded_cores,
            epoch_steps=self.epoch_steps,
        )

    @property
    def _handover(self) -> float:
        """Seconds to take a batch from a worker; a thread does it where batches are pinned."""
        pinned = self.has_cuda and self.setting("loader", "pin_memory") is True
        return self.policy.worker_pinned_seconds if pinned else self.policy.worker_transport_seconds

    @cached_property
    def epoch_steps(self) -> float | None:
        """Steps between two starts of the loader."""
        samples, batch = self.count("loader", "dataset_len"), self.batch_size
        known = samples and samples > 0 and batch and batch > 0 and self.run.world_size <= 1
        if known and samples and batch and self.setting("loader", "iterable") is not True:
            return max(1.0, samples / batch)
        started = self.count("loader", "epochs_started")
        return max(1.0, self.run.steps / started) if started and started > 0 and self.run.steps else None

    def saved_beyond(self, cost: float) -> float:
        """Seconds a step that go with a cause which costs `cost` by itself. When most steps are without
        it, the median one shows what a step takes then: the cause slows its neighbours, too."""
        median = self.lead.step.p50 if self.lead else None
        if self.period is None or not median or self.period - median < 0.5 * cost:
            return cost
        return min(max(self.period - 1.02 * median, 0.9 * cost), 1.6 * cost, 0.995 * self.period)

    @cached_property
    def load_work(self) -> float | None:
        """Seconds one process needs to make a batch: fetch + collate (+ sampler), as measured inside
        the loader; without workers the wait itself is that."""
        loader = self.lead.loader if self.lead else None
        if not self.workers:
            return self.seconds("data") or None
        if loader is None or loader.fetch_seconds is None:
            return None
        return loader.fetch_seconds + (loader.collate_seconds or 0.0)

    @cached_property
    def load_cpu_share(self) -> float:
        """Share of the loader's work that needs a core rather than waits."""
        cpu = self.scalar("loader.fetch_cpu_ratio")
        own = [spot for spot in self.hotspots if spot.phase in ("fetch", "data") and spot.in_data_set]
        spot = next((spot for spot in own if spot.phase == "fetch"), own[0] if own else None)
        if spot is not None and spot.share > 0.4:
            waiting = spot.kind in ("sleep", "io")
            return min(cpu if cpu is not None else 0.1, 0.45) if waiting else 1.0
        return min(1.0, max(0.02, cpu)) if cpu is not None else 1.0

    @cached_property
    def other_cores(self) -> float:
        """Cores others usually keep busy meanwhile; 0 when not known."""
        known = sorted(point.other_cpu for point in self.history if point.other_cpu is not None)
        return known[len(known) // 2] if known else 0.0

    @cached_property
    def forward_phases(self) -> tuple[str, ...]:
        """Where the forward pass is: without a loader to mark its begin it is part of "other", and with two
        models in a step also of "between"."""
        if self.seconds("forward") > 0.1 * self.seconds("backward"):
            return ("forward", "backward")
        between = [spot.share for spot in self.hotspots if (spot.phase, spot.kind) == ("between", "module")]
        return ("other", "between", "backward") if sum(between) >= 0.4 else ("other", "backward")

    @property
    def compute_share(self) -> float:
        """Share of the step in forward and backward."""
        return sum(self.share(phase) for phase in self.forward_phases)

    @cached_property
    def main_threads(self) -> float:
        """Cores the main process keeps busy outside the wait for data: not every operation is parallel."""
        threads = self.count("threads", "torch") or 1
        if self.has_cuda:
            return 1.0
        return 1.0 + 0.6 * (max(1, min(threads, int(self.cores or threads))) - 1)


@dataclass(frozen=True)
class MachineContext:
    """The whole picture, for rules about GPUs and the host rather than about one run."""

    snapshot: Snapshot
    policy: Policy
    idle_since: dict[str, float] = field(default_factory=dict)
    """GPU uuid → wall time since when it holds memory or a run and does nothing."""


def _hotspot(item: Any) -> Hotspot | None:
    """A hotspot of the probe, or None when it is not one (a ring is not to be trusted)."""
    if not isinstance(item, dict):
        return None
    share, line, seconds, calls = (item.get(key) for key in ("share", "line", "seconds", "calls"))
    if not isinstance(share, int | float) or not 0 < share <= 1.5:
        return None
    return Hotspot(
        phase=str(item.get("phase", "")),
        function=_plain(str(item.get("function", ""))),
        file=str(item.get("file", "")),
        line=line if isinstance(line, int) else 0,
        share=min(1.0, float(share)),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        kind=str(item.get("kind") or ""),
        code=str(item.get("code") or "")[:160],
        calls=float(calls) if isinstance(calls, int | float) else None,
        inside=str(item.get("inside") or "")[:80],
        callers=callers(item.get("callers")),
        constant=str(item.get("constant") or "")[:120],
        random=item.get("random") is True,
        fixed=item.get("fixed") is True,
        no_grad=item.get("no_grad") is True,
    )


def _plain(function: str) -> str:
    """The function a comprehension or lambda stands in: "Trainer.step.<dictcomp>" is `Trainer.step`."""
    if function.startswith("<"):
        return "<module>"
    return function.partition(".<")[0]


def callers(raw: Any) -> tuple[Caller, ...]:
    """Places of the probe; what is not one is left out."""
    items = [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []
    return tuple(
        Caller(
            _plain(str(item.get("function", ""))),
            str(item.get("file", "")),
            item["line"] if isinstance(item.get("line"), int) else 0,
            str(item.get("code") or "")[:120],
        )
        for item in items[:8]
    )
