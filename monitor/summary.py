"""`gpumon run` from the outside: watch one run while it lasts, then say in a few lines how it went.

With a daemon the daemon watches and is asked at the end. Without one, a thread of the `gpumon run`
process (never of the training) ticks a pipeline of its own once a second, reading the run's ring and
the machine, and keeps the run in the history so that it can be compared later.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from monitor import __version__, settings
from monitor.advice.combined import combined_speedup
from monitor.client import Client
from monitor.errors import UserError
from monitor.pipeline import Pipeline
from monitor.snapshot import Finding, Run, Snapshot, Speedup
from monitor.store.ledger import Entry, TrackRecord
from monitor.store.schema import StoreError
from monitor.store.store import Store

TICK_SECONDS = 1.0
SETTLE_SECONDS = 3.0
"""How long to wait after the end for the reader to see that the run has ended."""
OVER = ("ended", "failed", "killed")


@dataclass(frozen=True, slots=True)
class Report:
    """What there is to say about a run that is over."""

    run: Run | None
    findings: tuple[Finding, ...]
    verdict: str
    combined: Speedup | None = None
    exit_code: int | None = None
    run_id: str = ""
    kept: tuple[Entry, ...] = ()
    """Earlier promises this run has shown to be kept or not."""
    records: tuple[TrackRecord, ...] = ()
    """How good the predictions of the rules that speak here have been so far."""

    def as_json(self) -> dict[str, Any]:
        """The report as plain data: the findings of the output contract, and the run's figures."""
        run = self.run
        lead = min(run.ranks, key=lambda rank: rank.rank, default=None) if run else None
        answer: dict[str, Any] = {
            "run": run.id if run else self.run_id,
            "name": run.name if run else None,
            "state": run.state if run else "not_training",
            "exit_code": self.exit_code,
            "verdict": self.verdict,
            "findings": self.findings,
            "combined_speedup": self.combined,
            "realised": self.kept,
            "track_records": self.records,
            "gpumon": __version__,
        }
        if run is not None and lead is not None:
            answer |= _figures(run) | {"loader": lead.loader, "overhead_ratio": lead.overhead_ratio}
        plain: dict[str, Any] = msgspec.to_builtins(answer)
        return plain


def _figures(run: Run) -> dict[str, Any]:
    return {
        "started": run.started,
        "ended": run.ended,
        "setup_seconds": run.first_step_time - run.started if run.first_step_time else None,
        "steps": run.steps,
        "lost": run.lost,
        "batch_size": run.batch_size,
        "step_seconds": run.step,
        "iterations_per_second": run.iterations_per_second,
        "samples_per_second": run.samples_per_second,
        "tokens_per_second": run.tokens_per_second,
        "phases": run.phases,
        "stalls": run.stalls,
        "starved_ratio": run.starved_ratio,
        "trend_ratio": run.trend_ratio,
        "ranks": [{"rank": rank.rank, "state": rank.state, "step_seconds": rank.step} for rank in run.ranks],
        "config": run.config,
    }


class RunWatcher:
    """Watches the run with this id; `finish` gives the report. Harmless when nothing can be seen."""

    def __init__(self, run_id: str, *, connect: str | None = None) -> None:
        self.run_id = run_id
        self._client = _daemon(connect)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._pipeline: Pipeline | None = None
        self._store: Store | None = None
        self._last: Snapshot | None = None

    def start(self) -> None:
        """Begin to watch; with a daemon there is nothing to do."""
        if self._client is not None:
            return
        chosen = dataclasses.replace(settings.load(), interval=TICK_SECONDS)
        self._store = _open_store(chosen)
        self._pipeline = Pipeline(chosen, store=self._store, run=self.run_id)
        self._thread = threading.Thread(target=self._watch, name="gpumon-watch", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        """Once a second, also when a tick takes long: the next is armed when the last has ended."""
        assert self._pipeline is not None
        wait = TICK_SECONDS / 2
        while not self._stop.wait(wait):
            self._last = self._pipeline.tick()
            wait = TICK_SECONDS

    def finish(self, exit_code: int | None = None) -> Report:
        """The run is over: look once more and sum up."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(10.0)
        try:
            report = make_report(self._settled(), self.run_id, exit_code)
            return dataclasses.replace(report, **self._ledger(report))
        finally:
            self._close()

    def _ledger(self, report: Report) -> dict[str, Any]:
        """What the history knows about earlier promises; nothing when there is none."""
        rules = {finding.id for finding in report.findings if finding.speedup}
        try:
            if self._client is not None:
                answer = self._client.get_json("/api/v1/ledger")
                entries = msgspec.convert(answer["entries"], list[Entry])
                records = msgspec.convert(answer["rules"], list[TrackRecord])
            elif self._store is not None:
                entries, records = self._store.ledger(), self._store.track_records()
            else:
                return {}
        except (UserError, StoreError, msgspec.MsgspecError, KeyError, TypeError):
            return {}
        kept = tuple(
            entry for entry in entries if entry.after_run == self.run_id and entry.run != self.run_id
        )
        return {"kept": kept, "records": tuple(one for one in records if one.rule in rules and one.realised)}

    def _settled(self) -> Snapshot | None:
        """A snapshot in which the run has ended; the last one there is when that takes too long."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            snapshot = self._look()
            run = find_run(snapshot, self.run_id)
            if run is None and self._client is not None:
                self._client = None  # a daemon that looks elsewhere: read the ring ourselves
                self.start()
                continue
            if run is None or run.state in OVER or time.monotonic() > deadline:
                return snapshot
            time.sleep(0.1)

    def _look(self) -> Snapshot | None:
        if self._client is not None:
            try:
                return self._client.snapshot()
            except UserError:
                return None
        return self._pipeline.tick() if self._pipeline is not None else self._last

    def _close(self) -> None:
        self._stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(10.0)
        if self._pipeline is not None:
            self._pipeline.close()
        if self._store is not None:
            self._store.close()


def _daemon(connect: str | None) -> Client | None:
    """A daemon that answers. One that was named has to; one that was not named may be absent."""
    client = Client(connect, timeout=2.0)
    try:
        client.snapshot()
    except UserError:
        if connect:
            raise
        return None
    return client


def _open_store(chosen: settings.Settings) -> Store | None:
    """The history, when it can be opened: a run without it is still a run."""
    if chosen.store is None:
        return None
    with contextlib.suppress(OSError, UserError):
        Path(chosen.store).parent.mkdir(parents=True, exist_ok=True)
        return Store(chosen.store)
    return None


def find_run(snapshot: Snapshot | None, run_id: str) -> Run | None:
    """The run with this id that has made the most steps (a script may start several processes)."""
    runs = [run for run in snapshot.runs if run.id == run_id] if snapshot else []
    return max(runs, key=lambda run: run.steps, default=None)


def make_report(snapshot: Snapshot | None, run_id: str, exit_code: int | None) -> Report:
    """The report of one run of a snapshot."""
    run = find_run(snapshot, run_id)
    if snapshot is None or run is None or not run.steps:
        return Report(run, (), _never_trained(exit_code), None, exit_code, run_id)
    findings = findings_of(snapshot, run)
    combined = combined_speedup(snapshot, run, findings)
    return Report(run, findings, verdict(run, findings, combined), combined, exit_code, run_id)


def findings_of(snapshot: Snapshot, run: Run) -> tuple[Finding, ...]:
    """Findings about the run, and those about the GPUs it is on; ranked as they come."""
    return tuple(
        finding
        for finding in snapshot.findings
        if finding.run == run.id or (finding.run is None and finding.gpu in run.gpu_uuids)
    )


def verdict(run: Run, findings: tuple[Finding, ...], combined: Speedup | None) -> str:
    """One sentence."""
    serious = [finding for finding in findings if finding.severity in ("critical", "warning")]
    if serious:
        first = serious[0]
        gain = f" Fixing it should give about ×{_likely(first):.2g}." if _likely(first) >= 1.05 else ""
        more = len(serious) > 1 and combined is not None and combined.likely > 1.05 * _likely(first)
        together = f" All remedies together: about ×{combined.likely:.2g}." if more and combined else ""
        return f"{headline(first.title)}.{gain}{together}"
    healthy = next((finding for finding in findings if finding.severity == "healthy"), None)
    if healthy is not None:
        return f"{healthy.title}. {healthy.remedy.summary}"
    return f"Too little was measured for a verdict: {run.steps} steps, {run.lost} of them not read."


def headline(title: str) -> str:
    """The first clause of a title; code between backticks may have semicolons of its own."""
    at, quoted = 0, False
    for at, letter in enumerate(title):
        quoted = quoted != (letter == "`")
        if letter == ";" and not quoted:
            return title[:at]
    return title


def _likely(finding: Finding) -> float:
    return finding.speedup.likely if finding.speedup else 1.0


def _never_trained(exit_code: int | None) -> str:
    end = "ended" if not exit_code else f"ended with exit code {exit_code}"
    return f"No training was seen: the command {end} without a backward pass and optimizer step of torch."
