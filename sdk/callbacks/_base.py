"""What the callbacks of all frameworks share: waits of a DataLoader, micro-batches, the closing report."""

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
    """The loop of a framework that tells us where its parts begin."""

    def __init__(self, name: str | None, way: str, framework: str, options: dict[str, Any]) -> None:
        self.monitor = TrainingMonitor(name, mode=way, **options)
        self.recorder: Recorder = self.monitor.recorder
        self._framework = framework
        self._asked = False
        self._sees_loader = False
        """Whether the loader's own waits are seen; else a wait is what lies between two steps."""
        self._then = OTHER
        self._micro_batches = 0

    def begin(self, *phases: int) -> None:
        """The training begins; these phases can come."""
        self.monitor.start_monitoring()
        self.recorder = self.monitor.recorder
        self.monitor.session.claim()
        self.monitor.session.set_framework(self._framework)
        for phase in phases:
            self.recorder.totals.use(phase)

    def watch_loader(self, loader: Any, device: Any = None) -> None:
        """The loader of the training, and where its batches are copied to."""
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
        """Waiting for a batch is `data`; what follows copies it to the device, if there is one."""

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
        """Whether a batch that is asked for now is one to train on: not in an evaluation, or behind a
        step."""
        return self.recorder.current in (DATA, OTHER, TRANSFER, ring.PHASES.index("between"))

    def wait(self) -> None:
        """The framework asks for the next batch, sooner or later."""
        if not self._sees_loader and not self._asked:
            self._asked = self.recorder.request_batch()

    def batch_is_here(self, phase: int) -> None:
        """What it asked for came, and `phase` follows."""
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
        """One more was trained on."""
        self._micro_batches += 1

    def step(self, *args: Any, **kwargs: Any) -> None:
        """An update is done."""
        if self._micro_batches > 1:
            count = min(self._micro_batches, ring.MOST_MICRO_BATCHES)
            self.recorder.flag(count << ring.MICRO_BATCHES_SHIFT)
        self._micro_batches = 0
        self.monitor.step(*args, **kwargs)

    def end(self, *, failed: bool = False, report: bool = True) -> None:
        """The training is over; say how it went."""
        self.monitor.stop_monitoring(failed=failed)
        if report and self.monitor.recorder.steps:
            sys.stderr.write(f"{self.monitor.get_summary()}\n")
