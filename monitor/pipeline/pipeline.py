"""The one place where a snapshot is made. The daemon calls `tick` once per interval; commands that find no
daemon call it themselves, or `once` if they want a single answer.

Every collector is timed separately and reported in `Snapshot.collectors`. A failed collector's readings are
absent from this snapshot, never stale values of an earlier one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from monitor.advice.engine import YOUNG, Engine
from monitor.calibration import cache
from monitor.calibration.prices import calibrated
from monitor.model import facts
from monitor.model.clock import Moment
from monitor.model.policy import DEFAULT_POLICY, load_policy
from monitor.model.settings import Settings
from monitor.model.snapshot import HISTORY_STEPS, Snapshot
from monitor.model.snapshot import Collector as Outcome
from monitor.pipeline.collectors import COLLECTORS
from monitor.pipeline.draft import Draft, Setup

if TYPE_CHECKING:
    from monitor.model.policy import Policy
    from monitor.store.store import Store

Evaluate = Callable[[Snapshot], Snapshot]

log = logging.getLogger("gpumon.pipeline")


class Pipeline:
    """Collectors in order, then advice, then the store if there is one."""

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store | None = None,
        run: str | None = None,
        young: int | None = None,
    ) -> None:
        """With `run`, only that run is read; `young`: see `Engine`, None for its own."""
        self.settings = settings
        self._store = store
        self.policy = _policy(settings)
        self._engine = Engine(self.policy, YOUNG if young is None else young)
        self._learn()
        setup = Setup(settings, sink=store, run=run)
        self._collectors = [collector(setup) for collector in COLLECTORS]
        self._outcomes: dict[str, Outcome] = {}
        self._last: Snapshot | None = None

    def _learn(self) -> None:
        """How good the rules' predictions have been, so that a new pipeline learns from the past."""
        if self._store is not None:
            self._engine.errors = self._store.known_errors()

    def tick(self) -> Snapshot:
        """Ask every collector once and make the snapshot of this moment."""
        return self._tick(self._engine.evaluate)

    def once(self) -> Snapshot:
        """A single snapshot with its findings, for a command that will not see a second one."""
        return self._tick(self._engine.once, single=True)

    def close(self) -> None:
        """Close rings, host and driver; safe to call twice."""
        for collector in self._collectors:
            collector.close()

    def _tick(self, evaluate: Evaluate, *, single: bool = False) -> Snapshot:
        draft = Draft(Moment.now(), self._last, single)
        for collector in self._collectors:
            self._timed(collector.name, draft.now, partial(collector.collect, draft))
        if self._store is not None:
            draft.dropped[HISTORY_STEPS] = self._store.lost_steps
            draft.ring_trouble += self._store.spending.trouble()
        bare = draft.snapshot(self.settings.interval)
        joined = self._worked_out("facts", draft.now, facts.join, bare)
        advised = self._worked_out("advice", draft.now, evaluate, joined)
        judged = self._worked_out("conditions", draft.now, partial(facts.judge, policy=self.policy), advised)
        self._last = whole = replace(judged, collectors=tuple(self._outcomes.values()))
        if self._store is not None:
            self._timed("store", draft.now, partial(self._store.append, whole))
        return whole

    def _worked_out(self, name: str, now: Moment, work: Evaluate, known: Snapshot) -> Snapshot:
        """The snapshot after `work`; if that fails, the snapshot as it was."""
        made = [known]
        self._timed(name, now, lambda: made.append(work(known)))
        return made[-1]

    def _timed(self, name: str, now: Moment, work: Callable[[], None]) -> None:
        """Do one part of a tick; whatever it raises costs only its own readings, is counted and logged, and
        affects neither the other parts nor the daemon."""
        begin = time.perf_counter()
        failure: Exception | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001 — the barrier between collectors, see above
            failure = error
        self._note(name, now, time.perf_counter() - begin, failure)

    def _note(self, name: str, now: Moment, seconds: float, failure: Exception | None) -> None:
        before = self._outcomes.get(name)
        error = f"{type(failure).__name__}: {failure}" if failure else None
        if error and not (before and before.error == error) and not self._is_said(failure):
            log.warning("collector %s failed: %s", name, error, exc_info=failure)
        elif before and before.error and not error:
            log.info("collector %s works again", name)
        self._outcomes[name] = Outcome(
            name=name,
            ok=error is None,
            seconds=seconds,
            last_success=before.last_success if error and before else None if error else now.wall,
            failures=(before.failures if before else 0) + (error is not None),
            error=error,
        )

    def _is_said(self, failure: Exception | None) -> bool:
        """Whether the store has logged it itself: a history that cannot be written."""
        if self._store is None:
            return False
        from monitor.store.schema import StoreError  # where there is a store, it is imported already

        return isinstance(failure, StoreError)


def _policy(settings: Settings) -> Policy:
    """The site's thresholds, with the prices of this machine where they were measured."""
    chosen = load_policy(settings.policy) if settings.policy else DEFAULT_POLICY
    known = cache.load()
    return calibrated(chosen, known.prices) if known is not None else chosen
