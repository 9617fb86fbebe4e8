"""One run, from `start_monitoring()` to `stop_monitoring()`."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from .. import __version__, ring
from ..auto import registry
from ..auto.framework import framework_of
from ..compiler.tracing import find_torch
from ..core import NATIVE, Batches, Phase
from ..core.phases import BETWEEN, DATA
from ..device.open import open_lane
from ..loader.batch_size import BatchSize
from ..loader.watch import LoaderWatch, is_dataloader
from ..probe.observer import Observer
from ..profiling.requests import Loop, Requests
from ..sampling.windows import SamplingWindows
from ..writer import MemoryRing, NoRing, SwitchedOff, disabled, open_ring
from . import _identity as identity
from ._ending import end_state, keep_exit_code
from ._null_session import API, AUTO, CLASSIC, NullSession, Options
from ._process_events import at_child_end, watch_gc
from ._scalars import ScalarTable
from ._totals import SAMPLED, STEADY
from .recorder import Listener, Recorder
from .warn import kind_of, warn_once

MAX_ERRORS = 8
"""Chosen: instrumentation that has failed this often is removed from the loop."""
_EXIT_TRIES = 5
"""Chosen: after this many Ctrl-C while the process exits, we give up."""
_META_NAMES = 32
"""Most phase names without an id that the meta lists: it has room for little more than the probe."""


class Session(NullSession, Listener):
    """A run: its recorder and everything else that watches the loop."""

    opened: Callable[[bool], None] = staticmethod(lambda done: None)
    """Told when a ring has been opened, or could not be, whoever made the session."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._stamps = time.monotonic_ns(), time.time_ns()
        self._ended_ns: int | None = None
        self._not_recorded: str | None = None
        """Why there is no ring file."""
        self.recorder = Recorder(self)
        self.meta = identity.describe(options.name, options.mode, __version__)
        self._run = self.meta["run"]
        """The id of the first run; later runs in this process get a number appended."""
        self.loaders = LoaderWatch(lambda: self.meta, self._worker_folder)
        self.probe = Observer(self.loaders)
        self.before_stop: Callable[[], None] = lambda: None
        self.give_up: Callable[[], None] = lambda: None
        """Called after `MAX_ERRORS` failures."""
        self.each_second: Callable[[], None] = lambda: None
        self._batch = BatchSize(self)
        self._windows = SamplingWindows(self.recorder, self._sampled)
        self._requests = self._new_requests()
        self._phases: dict[str, Phase] = {}
        self._scalars = ScalarTable()
        self._device_known = False
        self._told: dict[str, Any] = {}
        self._undo: list[Callable[[], object]] = []

    # ── start and end ────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        find_torch()
        for phase in (DATA, BETWEEN):
            self.recorder.totals.use(phase)
        self.recorder.set_defaults(self.options.batch_size, self.options.tokens_per_step)
        self.probe.watch_torch()
        self._undo = [watch_gc(self.recorder), lambda: self.probe.close(), self.loaders.close]
        atexit.register(self._at_exit)
        if self.options.mode != AUTO and registry.auto() is None:
            self.open_ring()

    def when_compiler_loads(self, then: Callable[[Any], None]) -> None:
        """torch's compiler must know our C functions before it meets one; it can trace Python ones."""
        if NATIVE:
            from ..auto.import_hook import when_imported  # only once a run begins: importlib.abc is heavy

            self.when_stopped(when_imported("torch._dynamo", then))

    def open_ring(self) -> None:
        """Called at the start; automatic instrumentation waits until the process is seen to train."""
        if self.path is not None or self._not_recorded or not self.recorder.on:
            return
        self.meta |= {"rank": identity.rank(), "world": identity.world(), "batch_size": self.batch_size}
        try:
            writer = open_ring(self.meta, self.options.directory, self._stamps)
        except NoRing as reason:
            self._not_recorded = str(reason)
            if not isinstance(reason, SwitchedOff):
                self.opened(False)
                warn_once(f"this run is not recorded ({reason}); get_summary() still works")
            return
        self.path = writer.path
        self._scalars.attach(writer)
        self._requests.attach(writer.path, writer.words)
        self.recorder.attach(writer)
        self._write_meta()
        self._undo.append(at_child_end(self._at_exit))
        self.opened(True)

    def _worker_folder(self) -> str | None:
        """Where loader workers put their rings; None: nowhere."""
        if self._not_recorded or disabled():
            return None
        return self.options.directory or ring.default_directory()

    def claim(self) -> None:
        running = registry.auto()
        if running is not None and running.session is not self:
            running.retire()
            registry.set_owner(self)
        self.open_ring()

    def when_stopped(self, *undo: Callable[[], object]) -> None:
        self._undo += undo

    def stop(self, *, failed: bool = False, cause: BaseException | None = None) -> None:
        """`cause` is the exception that ended the loop, if one did."""
        if not self.recorder.on:
            return
        state = end_state(cause) if cause is not None else ring.S_FAILED if failed else ring.S_ENDED
        self._ended_ns = time.monotonic_ns()
        for part in (
            self.before_stop,
            self._requests.close,
            self._windows.close,
            self.loaders.run_ends,
            self.recorder.device.close,
            lambda: self._last_second(state, cause),
        ):
            self._guarded(part)
        self._scalars.attach(MemoryRing())
        self._guarded(lambda: self.recorder.finish(state))
        for undo in self._undo:
            undo()
        atexit.unregister(self._at_exit)

    def _last_second(self, state: int, cause: BaseException | None) -> None:
        self.second_passed(time.monotonic_ns())
        if cause is not None and state == ring.S_FAILED:
            self.meta["error"] = kind_of(cause)
            self._write_meta()

    def _guarded(self, part: Callable[[], None]) -> None:
        """A failure at the end must neither stop a training nor keep the other parts from ending."""
        try:
            part()
        except Exception as error:  # noqa: BLE001 — see above
            self.failed(error)

    def _at_exit(self) -> None:
        """The process is exiting anyway: another Ctrl-C must not keep the ring from being marked ended."""
        cause = getattr(sys, "last_value", None) or sys.exc_info()[1]
        for _ in range(_EXIT_TRIES):
            try:
                self.stop(cause=cause)
            except KeyboardInterrupt:
                continue
            break
        keep_exit_code(cause)

    def abandon(self) -> None:
        """End this run; if it has no step yet, delete its ring."""
        self.stop()
        if self.path is not None and not self.recorder.steps:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────

    def iterate(self, batches: Iterable[Any]) -> Iterator[Any]:
        self.claim()
        counting = self.options.batch_size is None  # the user gave no number of samples
        return Batches(self.recorder, functools.partial(self._first_request, batches), counting)

    def _first_request(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The first batch is requested: an epoch begins, and the loader's workers start."""
        if not self.recorder.depth:
            self.recorder.epoch()
        if is_dataloader(batches):
            made: Iterator[Any] = self.loaders.started(batches, iter)
            return made
        return iter(batches)

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self._phases.get(name) or self._new_phase(name)

    def _new_phase(self, name: str) -> Phase:
        self.claim()
        phase = self._phases[name] = Phase(self.recorder, self.recorder.register(name))
        self._write_meta()
        return phase

    def new_lap(self, name: str) -> None:
        if name not in self._phases:
            self._new_phase(name)
        self.recorder.mark(self.recorder.register(name))

    def step_details(
        self, loss: Any = None, *, samples: int | None = None, tokens: int | None = None, **scalars: Any
    ) -> None:
        known = None if loss is None else self._scalars.number(loss)
        self.recorder.set_step_values(samples, tokens, known)
        if scalars:
            self.scalars(scalars)

    def log(self, seconds: float, samples: int | None) -> None:
        if self.meta["way"] == API and not self.recorder.steps:
            self.meta["way"] = CLASSIC
            self._write_meta()
        self.recorder.log(float(seconds), samples if samples is not None else self.batch_size or 0)

    def scalars(self, values: dict[str, Any]) -> None:
        if self._scalars.update(values):
            self._write_meta()

    def phases_changed(self) -> None:
        """A phase got a name, which the meta must include."""
        self._write_meta()

    def tell(self, name: str, value: Any) -> None:
        """Something an experiment has found out about this run, for its meta."""
        self._told[name] = value
        self._write_meta()

    def note_framework(self, frame: FrameType | None) -> None:
        """Which framework's loop the first update came from, if any."""
        found = framework_of(frame)
        if found is not None:
            self.set_framework(found)

    def set_framework(self, name: str) -> None:
        self.meta["framework"] = name
        self._write_meta()

    def next_run(self, optimizer: Any, frame: FrameType | None) -> None:
        """Another training begins in this process: it gets its own ring and figures, and the open record
        is its first."""
        self._requests.close()
        self._windows.close()
        self.recorder.device.close()
        self.second_passed(time.monotonic_ns())
        self.recorder.next_ring()
        self._stamps = time.monotonic_ns(), time.time_ns()
        self.path, self.meta["run"] = None, self._run
        self.batch_size = self.options.batch_size
        self._batch, self._scalars = BatchSize(self), ScalarTable()
        self._windows = SamplingWindows(self.recorder, self._sampled)
        self._requests = self._new_requests()
        self.probe.close()
        self.probe = Observer(self.loaders)
        self.probe.training(sys.modules["torch"], optimizer, frame)
        self._device_known = False
        self._told = {}
        self.open_ring()

    # ── batches ──────────────────────────────────────────────────────────────────────────────────

    def measure_batch(self, batch: Any) -> None:
        self.recorder.count(*self._batch.of(batch))
        self.recorder.set_batch_path(self._batch.path)

    def count_batch(self, batch: Any) -> None:
        if self.options.batch_size is None:
            self.measure_batch(batch)

    def set_batch_size(self, size: int) -> None:
        self.batch_size = self.meta["batch_size"] = size
        self._write_meta()

    def know_rows(self, rows: int | None) -> None:
        """How many rows the model takes at once."""
        self._batch.rows = rows

    def watch_loader(self, loader: Any) -> None:
        self.loaders.loader = loader

    # ── what is known ────────────────────────────────────────────────────────────────────────────

    @property
    def run_id(self) -> str | None:
        return self.meta.get("run")

    @property
    def config(self) -> dict[str, Any]:
        return self.probe.config

    @property
    def began(self) -> int:
        """When this run began, in monotonic ns."""
        return self._stamps[0]

    @property
    def seconds(self) -> float:
        return ((self._ended_ns or time.monotonic_ns()) - self._stamps[0]) / 1e9

    def _facts(self) -> dict[str, Any]:
        facts = super()._facts()
        return facts | {"inactive": self._not_recorded} if self._not_recorded else facts

    def failed(self, error: Exception) -> None:
        super().failed(error)
        if self.recorder.errors >= MAX_ERRORS:
            self.give_up()

    def sample_due(self, steps: int, now: int, duration: int) -> None:
        if self._requests.taking:
            self.recorder.next_sample = steps + 1  # our own samples would show up in the trace
        else:
            self._windows.step(steps, now, duration)

    def profile_due(self, steps: int) -> None:
        self._requests.step(steps)
        self.recorder.next_profile = self._requests.next_step

    def _new_requests(self) -> Requests:
        return Requests(
            Loop(lambda: self.config.get("device"), lambda: self._windows.open, self.recorder.flag_next)
        )

    def _sampled(self, config: dict[str, Any], scalars: dict[str, float]) -> None:
        """A sampling window has closed."""
        if config.pop("checkpointing_seen", False):
            self.config.setdefault("model", {})["checkpointing"] = True
        self.config.update(config)
        self._scalars.update(scalars)
        self._write_meta()

    def second_passed(self, now: int) -> None:
        """Work too slow for every step."""
        self.each_second()
        self._requests.look(self.recorder.steps)
        self.recorder.next_profile = self._requests.next_step
        self.probe.watch_torch()
        self._watch_device()
        self.recorder.spent_ns += self.probe.take_cost() + self.loaders.take_cost()
        self.loaders.tick()
        scalars, changed = self.probe.refresh()
        changed |= self.probe.note("shapes", self._batch.config())
        workers = getattr(self.loaders.loader, "num_workers", 0)
        scalars |= self.recorder.totals.waits(workers) | self._collections()
        scalars |= self.recorder.device.scalars(self.recorder.names.name)
        changed |= self.probe.note("syncs", self.recorder.device.syncs())
        changed |= self.probe.note("kernels", self.recorder.device.kernels())
        changed |= self.probe.note("step_graph", self.recorder.device.graph(self.recorder.names.name))
        if self._scalars.update(scalars) or changed:
            self._write_meta()

    def _collections(self) -> dict[str, float]:
        if not NATIVE:
            return {}  # nobody watches them
        totals = self.recorder.totals
        spent = totals.group(STEADY).gc_ns + totals.group(SAMPLED).gc_ns
        return {"gc.seconds": spent / 1e9, "gc.collections": float(self.recorder.gc_collections)}

    def _watch_device(self) -> None:
        """Start timing the device once the parameters are seen on one."""
        if not self._device_known and "device" in self.config:
            self._device_known = True
            devices = self.config.get("devices") or [self.config["device"]]
            self.recorder.device = open_lane(devices, self._flag_next)

    def _flag_next(self, flags: int) -> None:
        """Set flags on the record after the one being committed."""
        self.recorder.next_flags |= flags

    def _write_meta(self) -> None:
        names = self.recorder.names
        self.meta["phases"] = list(names.own)
        if names.folded:
            self.meta["folded_phases"] = names.folded[:_META_NAMES]
        self.meta["scalars"] = self._scalars.names
        self.meta["config"] = self.config
        self.meta["device"] = self.config.get("device")
        self.meta["device_uuid"] = self.config.get("device_uuid")
        self.recorder.writer.write_meta(self.meta | self._told)
