"""Everything there is to say about one run, gathered once: every document is a layout of this."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from monitor import __version__
from monitor.model.account import Account, account_of
from monitor.model.distribution import Distribution, coarse_distribution, distribution
from monitor.model.finding import Finding
from monitor.model.history import HistoryPage, RunRecord
from monitor.model.post_mortem import ENDINGS, PostMortem, post_mortem
from monitor.model.run import Run
from monitor.model.since_start import Stretch, Track, last_step, stretches, track, uncounted
from monitor.model.verdict import Verdict
from monitor.store.chunks import Steps
from monitor.store.ledger import Entry

POINTS = 240
"""Points per reading over the whole run: about one per four pixels of a chart."""


class Dossier(msgspec.Struct, frozen=True):
    """A run, where its time went, how it ended, what was promised and what became of it."""

    run: Run
    findings: tuple[Finding, ...]
    account: Account
    sentence: str
    """The verdict."""
    written: float
    """Wall time."""
    end: PostMortem | None = None
    spread: Distribution | None = None
    promised: tuple[Entry, ...] = ()
    """What this run's findings promise, and what a later run made of it."""
    kept: tuple[Entry, ...] = ()
    """What an earlier run's findings promised, and this run realised."""
    stretches: tuple[Stretch, ...] = ()
    """The run's timeline in seconds since its start, like the fields below."""
    uncounted: tuple[tuple[float, float], ...] = ()
    """Stretches of steps that no figure counts: (begin, end)."""
    last_step_seconds: float | None = None
    """When the first rank's latest step ended."""
    readings: tuple[Track, ...] = ()
    """For the machine and the run's GPUs."""
    span: tuple[float, float] | None = None
    """The part of the run that a close-up shows (`close_up.py`)."""
    gpumon: str = __version__

    def as_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    def promise(self, finding: Finding) -> Entry | None:
        """What became of a finding's promise, if a later run shows it."""
        return next(
            (one for one in self.promised if one.rule == finding.id and one.realised is not None), None
        )


class Source(Protocol):
    """Anything that knows runs: a catalog, or a daemon."""

    def record(self, wanted: str) -> RunRecord: ...
    def readings(self, start: float, end: float, points: int) -> HistoryPage | None: ...
    def ledger(self) -> list[Entry]: ...
    def steps(self, run: str) -> Steps: ...


def gather(source: Source, wanted: str) -> Dossier:
    """A run by id, start of an id, name or ``last``, with all that is known about it. Raises `UserError`."""
    record = source.record(wanted)
    run = record.run
    return make_dossier(
        record,
        written=time.time(),
        steps=source.steps(run.id).seconds,
        entries=source.ledger(),
        readings=source.readings(run.started, run.started + max(1.0, run.elapsed_seconds), POINTS),
    )


def make_dossier(
    record: RunRecord,
    *,
    written: float,
    steps: Sequence[float] = (),
    entries: Iterable[Entry] = (),
    readings: HistoryPage | None = None,
) -> Dossier:
    """`steps` are the seconds of individual steps, `entries` the ledger; anything missing is left out."""
    run, entries = record.run, tuple(entries)
    faults = tuple(one for one in record.findings if one.severity != "healthy")
    end = post_mortem(run, record.findings)
    lead = run.ranks[0] if run.ranks else None
    parts = stretches(run, run.timeline)
    return Dossier(
        run=run,
        findings=faults,
        account=account_of(run),
        sentence=_sentence(run, end),
        written=written,
        end=end,
        spread=distribution(steps) or (coarse_distribution(lead) if lead is not None else None),
        promised=tuple(one for one in entries if one.run == run.id),
        kept=tuple(one for one in entries if one.after_run == run.id and one.run != run.id),
        stretches=parts,
        uncounted=uncounted(run, parts),
        last_step_seconds=last_step(run),
        readings=own_readings(run, readings),
    )


def _sentence(run: Run, end: PostMortem | None) -> str:
    """How it ended, if badly; then what to change, unless that says the same."""
    if not run.steps:
        return f"{end.text()}." if end is not None else "No step was recorded."
    verdict = run.verdict or Verdict("unknown", steps=run.steps, lost=run.lost)
    if end is None:
        return verdict.text()
    return f"{end.text()}." if verdict.rule in (*ENDINGS, None) else f"{end.text()}. {verdict.text()}"


def own_readings(run: Run, page: HistoryPage | None) -> tuple[Track, ...]:
    """Only those of the host and the run's GPUs."""
    wanted = {"host", *(f"gpu:{uuid}" for uuid in run.gpu_uuids)}
    found = [track(run, one) for one in (page.series if page is not None else ()) if one.subject in wanted]
    return tuple(one for one in found if one is not None)
