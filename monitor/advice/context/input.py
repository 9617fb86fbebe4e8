"""What a run's input costs: the loader's work, how much of it needs a core, how often it restarts."""

from __future__ import annotations

from functools import cached_property

from monitor.advice.context.figures import RunFigures

LOADER_PHASES = ("fetch", "data")
"""Phases in which samples are made: inside the loader, and the loop's wait for it."""
TELLING_SHARE = 0.4
"""A data-set line with this share of loading shows whether loading computes or waits."""
WAITING_CPU, WAITING_CPU_MOST = 0.1, 0.45
"""Share of a waiting loader's work that needs a core: if it was not measured, and at most."""
LEAST_CPU = 0.02
"""However much a loader waits, it still has to copy what it waited for."""


class InputFigures(RunFigures):
    """Loading, as rules about input see it."""

    @cached_property
    def load_work(self) -> float | None:
        """Seconds one process needs to make a batch: fetch + collate (+ sampler), as measured inside the
        loader; without workers, the wait itself."""
        loader = self.lead.loader if self.lead else None
        if not self.workers:
            return self.seconds("data") or None
        if loader is None or loader.fetch_seconds is None:
            return None
        return loader.fetch_seconds + (loader.collate_seconds or 0.0)

    @cached_property
    def load_cpu_share(self) -> float:
        """Share of the loader's work that needs a core instead of waiting."""
        cpu = self.scalar("loader.fetch_cpu_ratio")
        own = [spot for spot in self.hotspots if spot.phase in LOADER_PHASES and spot.in_data_set]
        spot = next((spot for spot in own if spot.phase == "fetch"), own[0] if own else None)
        if spot is not None and spot.share > TELLING_SHARE:
            waiting = spot.kind in ("sleep", "io")
            return min(cpu if cpu is not None else WAITING_CPU, WAITING_CPU_MOST) if waiting else 1.0
        return min(1.0, max(LEAST_CPU, cpu)) if cpu is not None else 1.0

    @cached_property
    def epoch_steps(self) -> float | None:
        """Steps between two starts of the loader."""
        samples, batch = self.count("loader", "dataset_len"), self.batch_size
        known = samples and samples > 0 and batch and batch > 0 and self.run.world_size <= 1
        if known and samples and batch and self.setting("loader", "iterable") is not True:
            return max(1.0, samples / batch)
        started = self.count("loader", "epochs_started")
        return max(1.0, self.run.steps / started) if started and started > 0 and self.run.steps else None

    @property
    def handover(self) -> float:
        """Seconds to take a batch from a worker; a thread does it if batches are pinned."""
        pinned = self.has_cuda and self.setting("loader", "pin_memory") is True
        return self.policy.worker_pinned_seconds if pinned else self.policy.worker_transport_seconds
