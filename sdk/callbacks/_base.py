"""What the callbacks of all frameworks share: DataLoader waits, micro-batches, the closing report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from .. import ring
from ..auto.patch import replace
from ..core.phases import DATA, OTHER, TRANSFER
from ..loader.watch import is_dataloader
from ..loop.monitor import TrainingMonitor
from ..loop.recorder import Recorder


class FrameworkLoop:
    """A framework's loop, which tells us where its parts begin."""

    def __init__(self, name: str | None, way: str, framework: str, options: dict[str, Any]) -> None:
        self.monitor = TrainingMonitor(name, mode=way, **options)
        self.recorder: Recorder = self.monitor.recorder
        self._framework = framework
        self._asked = False
        self._sees_loader = False
        """Whether we see the loader's own waits; else the time between two steps counts as a wait."""
        self._then = OTHER
        self._micro_batches = 0

    def begin(self, *phases: int) -> None:
        """The training begins; these phases may occur."""
        self.monitor.start_monitoring()
        self.recorder = self.monitor.recorder
        self.monitor.session.claim()
        self.monitor.session.set_framework(self._framework)
        for phase in phases:
            self.recorder.totals.use(phase)

    def watch_loader(self, loader: Any, device: Any = None) -> None:
        """The training's loader, and the device its batches are copied to."""
        if loader is None:
            return
        self.monitor.session.watch_loader(loader)
        torch = sys.modules.get("torch")
        if self._sees_loader or torch is None or not is_dataloader(loader):
            return
        self._sees_loader = True
        self._then = TRANSFER if getattr(device, "type", "cpu") not in ("cpu", "meta") else OTHER
        self.recorder.totals.use(TRANSFER)
        iterator = torch.utils.data.dataloader._BaseDataLoaderIter
        self.monitor.session.when_stopped(replace(iterator, "__next__", self._timed))

    def _timed(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Waiting for a batch is `data`; then it is copied to the device, if there is one."""

        def __next__(iterator: Any) -> Any:
            if not self._waits():
                return original(iterator)
            asked = self.recorder.request_batch()
            try:
                batch = original(iterator)
            except BaseException:
                self.recorder.exhausted(asked)
                raise
            self.recorder.end_wait(self._then, asked)
            return batch

        return __next__

    def _waits(self) -> bool:
        """Whether a batch requested now is for training: between steps or before the model, not in an
        evaluation."""
        return self.recorder.current in (DATA, OTHER, TRANSFER, ring.PHASES.index("between"))

    def wait(self) -> None:
        """The framework will request the next batch sooner or later."""
        if not self._sees_loader and not self._asked:
            self._asked = self.recorder.request_batch()

    def batch_is_here(self, phase: int) -> None:
        """The requested batch has arrived, and `phase` begins."""
        if self._asked:
            self.recorder.end_wait(phase, True)
        else:
            self.recorder.mark(phase)
        self._asked = False

    def no_batch(self) -> None:
        """No batch is being waited for after all."""
        self.recorder.exhausted(self._asked)
        self._asked = False

    def micro_batch(self) -> None:
        """One more micro-batch was trained on."""
        self._micro_batches += 1

    def step(self, *args: Any, **kwargs: Any) -> None:
        """An update is done."""
        if self._micro_batches > 1:
            count = min(self._micro_batches, ring.MOST_MICRO_BATCHES)
            self.recorder.flag(count << ring.MICRO_BATCHES_SHIFT)
        self._micro_batches = 0
        self.monitor.step(*args, **kwargs)

    def end(self, *, failed: bool = False, report: bool = True) -> None:
        """The training is over; report how it went."""
        self.monitor.stop_monitoring(failed=failed)
        if report and self.monitor.recorder.steps:
            sys.stderr.write(f"{self.monitor.get_summary()}\n")
