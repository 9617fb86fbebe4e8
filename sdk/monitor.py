"""`TrainingMonitor`: the public face. It names things and guards the loop; `Recorder` does the work."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from . import __version__, identity, registry, ring
from .batch import BatchSize
from .compiling import Compiling, check_with, look_for_torch, untraced
from .core import NATIVE, Face, Phase, tracing
from .device import open_timer
from .guard import say_once
from .lifecycle import watch_gc
from .loader import LoaderWatch
from .look import Look
from .monitored import MonitoredLoader
from .observe import Observer
from .phases import BETWEEN, DATA
from .recorder import Recorder
from .rings import NoRing, disabled, open_ring
from .scalars import ScalarTable
from .statistics import SAMPLED, STEADY
from .summary import NOTE_CPU, Summary, summarize

T = TypeVar("T")


class TrainingMonitor(Face):
    """Records a training loop into its ring and knows its figures.

    ``with TrainingMonitor("resnet", batch_size=64) as m: for batch in m.loader(loader): …; m.step()``

    Also the classic four calls: `start_monitoring`, `log_iteration`, `stop_monitoring`,
    `get_summary`. It never raises into the loop; without a usable directory it only keeps figures.
    """

    _recorder: Recorder

    def __init__(
        self,
        name: str | None = None,
        *,
        batch_size: int | None = None,
        tokens_per_step: int | None = None,
        directory: str | None = None,
        way: str = "api",
    ) -> None:
        self.name = name or identity.default_name()
        self.batch_size = self._batch_size = batch_size
        self.tokens_per_step = tokens_per_step
        self.way = way
        self.late = False
        self.before_stop: Callable[[], None] | None = None
        self.inactive: str | None = None
        self.loaders = LoaderWatch(lambda: self._meta, self._worker_folder)
        self._directory = directory
        recorder = Recorder(None)
        recorder.switch_off()
        super().__init__(recorder)
        self._phases: dict[str, Phase] = {}
        self._scalars = ScalarTable()
        self._meta: dict[str, Any] = {}
        self._started = self._seconds = 0.0
        self._undo: list[Callable[[], object]] = []
        self._device_known = False
        self.size = BatchSize(self)
        self._observer = Observer(self.loaders)
        self.look = Look(self._recorder, self._seen)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────

    def start_monitoring(self) -> None:
        """Begin a run. Called again while it runs, it does nothing; after a stop, a new run begins."""
        if self._recorder.on:
            return
        try:
            self._start()
        except Exception as error:  # noqa: BLE001 — whatever fails here must not stop a training
            self.failed(error)

    def _start(self) -> None:
        look_for_torch()
        self._stamps = time.monotonic_ns(), time.time_ns()
        self._recorder = Recorder(None)
        self._scalars = ScalarTable()
        self._phases.clear()
        self.inactive = None
        self._meta = identity.describe(self.name, self.way, __version__)
        for phase in (DATA, BETWEEN):
            self._recorder.totals.use(phase)
        self._recorder.usual(self._batch_size, self.tokens_per_step)
        self._recorder.on_slow = self._housekeeping
        self._recorder.on_error = self.failed
        self._recorder.on_lap = self._first_lap
        self._recorder.on_say = self._say
        self._recorder.on_batch = self._look_at
        self.look = Look(self._recorder, self._seen)
        self._started = time.monotonic()
        self._device_known = False
        self.size = BatchSize(self)
        self.loaders = LoaderWatch(lambda: self._meta, self._worker_folder)
        self._observer = Observer(self.loaders)
        self._observer.watch_torch()
        self._undo = [watch_gc(self._recorder), self._observer.close, self.loaders.close]
        if NATIVE:
            from .launch import when_imported

            self._undo.append(when_imported("torch._dynamo", lambda _: _known_to_compiler()))
        atexit.register(self._at_exit)
        if not self.late and registry.auto() is None:
            self.open_late()

    def open_late(self) -> None:
        """Create the ring. At the start; the auto way waits until the process is seen to train."""
        if self._recorder.writer is not None or self.inactive or not self._recorder.on:
            return
        self._meta |= {"rank": identity.rank(), "world": identity.world(), "batch_size": self.batch_size}
        try:
            writer = open_ring(self._meta, self._directory, self._stamps)
        except NoRing as reason:
            self._without_ring(str(reason))
            return
        self._scalars.attach(writer)
        self._recorder.attach(writer)
        self._meta_changed()

    def _worker_folder(self) -> str | None:
        return None if self.inactive or disabled() else self._directory or ring.default_directory()

    def _without_ring(self, reason: str) -> None:
        self.inactive = reason
        if "GPUMON_DISABLE" not in reason:
            say_once(f"this run is not recorded ({reason}); get_summary() still works")

    def claim(self) -> None:
        """The script marks its own phases: the auto way, if it runs here, steps back."""
        auto = registry.auto()
        if auto is not None and auto.monitor is not self:
            auto.retire()
        self.open_late()

    def abandon(self) -> None:
        """End this run; as if it had never been when it has no step yet."""
        path = self.path if not self._recorder.steps else None
        self.stop_monitoring()
        if path is not None:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _at_exit(self) -> None:
        self.stop_monitoring(failed=getattr(sys, "last_value", None) is not None)

    def stop_monitoring(self, *, failed: bool = False) -> None:
        """End the run: commit the last step, mark the ring as ended."""
        recorder = self._recorder
        if not recorder.on:
            return
        self._seconds = time.monotonic() - self._started
        try:
            if self.before_stop is not None:
                self.before_stop()
            self.look.close()
            self._housekeeping(time.monotonic_ns())
            recorder.finish(ring.S_FAILED if failed else ring.S_ENDED)
        except Exception as error:  # noqa: BLE001 — the same: never into the training
            self.failed(error)
        for undo in self._undo:
            undo()
        atexit.unregister(self._at_exit)

    def __enter__(self) -> TrainingMonitor:
        self.start_monitoring()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_monitoring(failed=kind is not None and kind is not GeneratorExit)

    @classmethod
    def auto(cls, name: str | None = None) -> TrainingMonitor:
        """One line at the top of a script: everything else is recognised. Called again, it gives the
        same monitor."""
        from .launch import start_auto

        monitor: TrainingMonitor = start_auto(cls, name)
        return monitor

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────

    def loader(self, batches: Iterable[T]) -> Iterable[T]:
        """Iterate `batches`; waiting for each is the phase `data` and begins a step."""
        return MonitoredLoader(self, batches)

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        """``with m.phase("forward"):``. Nested phases are exclusive: the outer one stands still."""
        if Compiling.check():
            return contextlib.nullcontext()
        return self._phases.get(name) or self._new_phase(name)

    def _new_phase(self, name: str) -> Phase:
        self.claim()
        phase = self._phases[name] = Phase(self._recorder, self._recorder.register(name))
        self._meta_changed()
        return phase

    def _first_lap(self, name: str) -> None:
        if name not in self._phases:
            self._new_phase(name)
        self._recorder.mark(self._recorder.register(name))

    def _say(
        self, loss: Any = None, *, samples: int | None = None, tokens: int | None = None, **scalars: Any
    ) -> None:
        """What is said of the step that ends now."""
        self._recorder.tell(samples, tokens, None if loss is None else self._scalars.number(loss))
        if scalars:
            self.scalars(scalars)

    def _look_at(self, batch: Any) -> None:
        """A batch whose size is not known the short way."""
        self._recorder.count(*self.size.of(batch))
        self._recorder.sized(self.size.path)

    def log_iteration(self, seconds: float, samples: int | None = None) -> None:
        """The classic call: an iteration that took `seconds` has just ended."""
        try:
            if self.way == "api" and not self._recorder.steps:
                self._meta["way"] = self.way = "seed"
                self._meta_changed()
            self._recorder.log(float(seconds), samples if samples is not None else self.batch_size or 0)
        except Exception as error:  # noqa: BLE001 — as in step()
            self.failed(error)

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins; `loader()` says this by itself."""
        self._recorder.epoch(number)

    def scalars(self, values: dict[str, Any]) -> None:
        """The user's own numbers, the newest of each."""
        if self._scalars.update(values):
            self._meta_changed()

    # ── figures ──────────────────────────────────────────────────────────────────────────────────

    def get_summary(self) -> Summary:
        """Figures of the run so far: a mapping, and a report when printed."""
        seconds = time.monotonic() - self._started if self._recorder.on else self._seconds
        device = self._observer.config.get("device")
        extra: dict[str, Any] = {"run": self._meta.get("run"), "device": device}
        if device is None or device.startswith("cpu"):
            extra["note"] = NOTE_CPU
        if self.inactive:
            extra["inactive"] = self.inactive
        return summarize(self._recorder, self.name, seconds, extra)

    @property
    def counts_batches(self) -> bool:
        """Whether samples are counted from the batches: nobody said how many there are."""
        return self._batch_size is None

    def when_stopped(self, *undo: Callable[[], object]) -> None:
        """Run these when the run ends."""
        self._undo += undo

    @property
    def config(self) -> dict[str, Any]:
        """What is configured, as far as it is known now (docs/probe.md)."""
        return self._observer.config

    @property
    def observer(self) -> Observer:
        return self._observer

    @property
    def recorder(self) -> Recorder:
        return self._recorder

    def set_batch_size(self, size: int) -> None:
        """Learnt from a batch, when nobody said it."""
        self.batch_size = self._meta["batch_size"] = size
        self._meta_changed()

    @property
    def run_id(self) -> str | None:
        return self._meta.get("run")

    @property
    def path(self) -> str | None:
        """The ring file, if there is one."""
        return self._recorder.writer.path if self._recorder.writer else None

    def _seen(self, config: dict[str, Any], scalars: dict[str, float]) -> None:
        """A close look has ended."""
        if config.pop("checkpointing_seen", False):
            self._observer.config.setdefault("model", {})["checkpointing"] = True
        self._observer.config |= config
        self._scalars.update(scalars)
        self._meta_changed()

    def _housekeeping(self, now: int) -> None:
        """At most once a second: what is too slow for every step."""
        self._observer.watch_torch()
        self._watch_device()
        self.loaders.tick()
        scalars, changed = self._observer.refresh()
        changed |= self._observer.note("shapes", self.size.config())
        totals = self._recorder.totals
        scalars |= self._waits()
        scalars["gc.seconds"] = (totals.group(STEADY).gc_ns + totals.group(SAMPLED).gc_ns) / 1e9
        scalars["gc.collections"] = float(self._recorder.gc_collections)
        if self._scalars.update(scalars) or changed:
            self._meta_changed()

    def _waits(self) -> dict[str, float]:
        """How long the loop waits for workers, and for the first batch of an epoch."""
        totals = self._recorder.totals
        steady = totals.group(STEADY)
        found = {}
        if steady.steps and getattr(self.loaders.loader, "num_workers", 0):
            found["loader.wait_s"] = steady.phases[DATA] / steady.steps / 1e9
        if totals.epochs:
            found["loader.first_wait_s"] = totals.epoch_wait_ns / totals.epochs / 1e9
        return found

    def _watch_device(self) -> None:
        """Device events once the parameters are seen on one."""
        recorder = self._recorder
        if recorder.device is None and not self._device_known and "device" in self._observer.config:
            self._device_known = True
            recorder.device = open_timer(self._observer.config["device"])

    def _meta_changed(self) -> None:
        names = self._recorder.names
        self._meta["phases"] = list(names.own)
        if names.folded:
            self._meta["folded_phases"] = list(names.folded)[:32]
        self._meta["scalars"] = self._scalars.names
        config = self._meta["config"] = self._observer.config
        self._meta["device"] = config.get("device")
        self._meta["device_uuid"] = config.get("device_uuid")
        if self._recorder.writer is not None and self._recorder.on:
            self._recorder.writer.write_meta(self._meta)

    def failed(self, error: Exception) -> None:
        self._recorder.errors += 1
        say_once(f"{type(error).__name__} inside gpumon, training goes on: {error}")


def _known_to_compiler() -> None:
    """torch's compiler is loaded, which every optimizer does: it must take our C functions for nothing."""
    check_with(tracing)
    if not untraced(Face.lap, Face.step):
        from .core import plainfaces

        for name in ("lap", "step"):  # it can trace Python
            setattr(TrainingMonitor, name, getattr(plainfaces.Face, name))
