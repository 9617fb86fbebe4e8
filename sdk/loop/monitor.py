"""`TrainingMonitor`: the public API. It guards the loop; a `Session` does the work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from types import TracebackType
from typing import Any, TypeVar

from ..compiler.tracing import Compiling, check_with, trace_as_no_op
from ..core import Marks, tracing
from ..loader.iteration import MonitoredLoader
from . import _identity as identity
from ._null_session import API, NullSession, Options
from .recorder import Recorder
from .session import Session
from .summary import Summary

T = TypeVar("T")


class TrainingMonitor(Marks):
    """Records a training loop into its ring and computes its figures.

    ``with TrainingMonitor("resnet", batch_size=64) as m: for batch in m.loader(loader): …; m.step()``

    It also has the four classic calls: `start_monitoring`, `log_iteration`, `stop_monitoring`,
    `get_summary`. It never raises into the loop. Without a usable directory it only keeps figures.
    """

    _recorder: Recorder

    def __init__(
        self,
        name: str | None = None,
        *,
        batch_size: int | None = None,
        tokens_per_step: int | None = None,
        directory: str | None = None,
        mode: str = API,
    ) -> None:
        name = name or identity.default_name()
        self._options = Options(name, mode, batch_size, tokens_per_step, directory)
        self._session = NullSession(self._options)
        super().__init__(self._session.recorder)

    # ── start and end ────────────────────────────────────────────────────────────────────────────

    def start_monitoring(self) -> None:
        """Begin a run. Does nothing while a run is in progress; after a stop, begins a new one."""
        if self._recorder.on:
            return
        try:
            session = Session(self._options)
            self._session, self._recorder = session, session.recorder
            session.start()
            session.when_compiler_loads(lambda _: _tell_compiler())
        except Exception as error:  # noqa: BLE001 — no failure here may stop a training
            self._session.failed(error)

    def stop_monitoring(self, *, failed: bool = False) -> None:
        """End the run: commit the last step, mark the ring as ended."""
        self._session.stop(failed=failed)

    def __enter__(self) -> TrainingMonitor:
        self.start_monitoring()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.stop(cause=error)

    @classmethod
    def auto(cls, name: str | None = None, *, explore: bool = False) -> TrainingMonitor:
        """One line at the top of a script; the rest is recognized automatically. Called again, it returns
        the same monitor. `explore` tries settings during training and keeps the faster ones; losses stay the
        same up to rounding (docs/try.md)."""
        from ..auto.start import start_auto

        monitor: TrainingMonitor = start_auto(cls, name, explore)
        return monitor

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────

    def loader(self, batches: Iterable[T]) -> Iterable[T]:
        """Iterate over `batches`; waiting for each is phase `data` and begins a step."""
        return MonitoredLoader(self, batches)

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        """``with m.phase("forward"):``. Nested phases are exclusive: the outer one is paused."""
        return contextlib.nullcontext() if Compiling.check() else self._session.phase(name)

    def log_iteration(self, seconds: float, samples: int | None = None) -> None:
        """The classic call: an iteration that took `seconds` has just ended."""
        try:
            self._session.log(seconds, samples)
        except Exception as error:  # noqa: BLE001 — nor may a bad value stop a training
            self._session.failed(error)

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins; `loader()` calls this by itself."""
        self._recorder.epoch(number)

    def scalars(self, values: dict[str, Any]) -> None:
        """Store your own numbers; only the newest value of each is kept."""
        self._session.scalars(values)

    # ── figures ──────────────────────────────────────────────────────────────────────────────────

    def get_summary(self) -> Summary:
        """Figures of the run so far: a mapping, and a report when printed."""
        return self._session.summary()

    @property
    def name(self) -> str:
        return self._options.name

    @property
    def batch_size(self) -> int | None:
        """As given, or as learned from the first batch."""
        return self._session.batch_size

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, as far as it is known now (docs/probe.md)."""
        return self._session.config

    @property
    def run_id(self) -> str | None:
        return self._session.run_id

    @property
    def path(self) -> str | None:
        """The ring file, if there is one."""
        return self._session.path

    @property
    def session(self) -> NullSession:
        """The run being recorded, or the last one."""
        return self._session

    @property
    def recorder(self) -> Recorder:
        return self._recorder


def _tell_compiler() -> None:
    """torch's compiler is loaded, as every optimizer does: it must trace our C functions as no-ops."""
    check_with(tracing)
    if not trace_as_no_op(Marks.lap, Marks.step):
        from ..core import plain_marks

        for name in ("lap", "step"):  # it can trace Python ones
            setattr(TrainingMonitor, name, getattr(plain_marks.Marks, name))
