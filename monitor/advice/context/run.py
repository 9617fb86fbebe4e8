"""One run as a rule sees it."""

from __future__ import annotations

from functools import cached_property

from monitor.advice.context.compute import ComputeFigures
from monitor.advice.context.input import InputFigures
from monitor.advice.prediction.step_model import StepModel

FIXED_PHASES = ("optimizer", "zero_grad", "grad_norm", "log", "sync")
"""Phases whose time does not depend on the batch."""
PARALLEL_SHARE = 0.6
"""Share of a pass on a CPU taken to use all threads where nobody measured it. Judgement."""


class RunContext(InputFigures, ComputeFigures):
    """All figures of one run, and the model of its step."""

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
            handover=self.handover,
            fixed=fixed,
            worker_slowdown=self.policy.worker_slowdown,
            worker_seconds=self.policy.worker_batch_seconds,
            crowded=self.policy.crowded_cores,
            epoch_steps=self.epoch_steps,
            steps=self.steps,
            borrowed_prices=not self.policy.prices_measured,
            device_busy=self.lead.device_times.busy_ratio if self.lead else None,
            lanes=self.lanes,
        )

    @cached_property
    def main_threads(self) -> float:
        """Cores the main process keeps busy while it does not wait for data. Threads that spin until the next
        parallel operation count: work put beside them on their core delays that operation."""
        threads = max(1, min(self.count("threads", "torch") or 1, int(self.cores or 1)))
        if self.has_cuda or threads == 1:
            return 1.0
        loading = self.seconds("data")
        rest = sum(self.phases.values()) - loading
        if self.trainer_cores is None or rest <= 0:
            return 1.0 + PARALLEL_SHARE * (threads - 1)
        fetched = 0.0 if self.workers else loading * self.load_cpu_share
        busy = (self.trainer_cores * (rest + loading) - fetched) / rest
        return min(float(threads), max(1.0, busy))
