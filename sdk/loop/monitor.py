"""`TrainingMonitor`: the public API. It guards the loop; a `Session` does the work of a run."""

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
        mode: str = API,
    ) -> None:
        name = name or identity.default_name()
        self._options = Options(name, mode, batch_size, tokens_per_step, directory)
        self._session = NullSession(self._options)
        super().__init__(self._session.recorder)

    # ── start and end ────────────────────────────────────────────────────────────────────────────

    def start_monitoring(self) -> None:
        """Begin a run. Called again while it runs, it does nothing; after a stop, a new run begins."""
        if self._recorder.on:
            return
        try:
            session = Session(self._options)
            self._session, self._recorder = session, session.recorder
            session.start()
            session.when_compiler_loads(lambda _: _tell_compiler())
        except Exception as error:  # noqa: BLE001 — whatever fails here must not stop a training
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
        """One line at the top of a script: everything else is recognised. Called again, it gives the
        same monitor. `explore` tries settings while the training runs and keeps what is faster; the losses
        stay the same up to rounding (docs/try.md)."""
        from ..auto.start import start_auto

        monitor: TrainingMonitor = start_auto(cls, name, explore)
        return monitor

    # ── the loop ─────────────────────────────────────────────────────────────────────────────────

    def loader(self, batches: Iterable[T]) -> Iterable[T]:
        """Iterate `batches`; waiting for each is the phase `data` and begins a step."""
        return MonitoredLoader(self, batches)

    def phase(self, name: str) -> contextlib.AbstractContextManager[None]:
        """``with m.phase("forward"):``. Nested phases are exclusive: the outer one is paused."""
        return contextlib.nullcontext() if Compiling.check() else self._session.phase(name)

    def log_iteration(self, seconds: float, samples: int | None = None) -> None:
        """The classic call: an iteration that took `seconds` has just ended."""
        try:
            self._session.log(seconds, samples)
        except Exception as error:  # noqa: BLE001 — a bad value must not stop a training either
            self._session.failed(error)

    def epoch(self, number: int | None = None) -> None:
        """A new epoch begins; `loader()` says this by itself."""
        self._recorder.epoch(number)

    def scalars(self, values: dict[str, Any]) -> None:
        """The user's own numbers, the newest of each."""
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
        """As given, or as learnt from the first batch."""
        return self._session.batch_size

    @property
    def config(self) -> dict[str, Any]:
        """What is configured, as far as it is known now (docs/probe.md)."""
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
        """The run that is recorded now, or was last."""
        return self._session

    @property
    def recorder(self) -> Recorder:
        return self._recorder


def _tell_compiler() -> None:
    """torch's compiler is loaded, which every optimizer does: it must trace our C functions as no-ops."""
    check_with(tracing)
    if not trace_as_no_op(Marks.lap, Marks.step):
        from ..core import plain_marks

        for name in ("lap", "step"):  # Python ones it can trace
            setattr(TrainingMonitor, name, getattr(plain_marks.Marks, name))
