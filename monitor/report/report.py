"""The report on a finished run, as data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from monitor import __version__
from monitor.model import facts
from monitor.model.finding import Finding, Speedup
from monitor.model.owner import own_uid
from monitor.model.run import Rank, Run
from monitor.model.snapshot import Snapshot
from monitor.model.verdict import Verdict
from monitor.report.milestones import Seen
from monitor.store.ledger import Entry, TrackRecord


@dataclass(frozen=True, slots=True)
class Report:
    """Everything there is to say about a finished run."""

    run: Run | None
    findings: tuple[Finding, ...]
    verdict: str
    combined: Speedup | None = None
    exit_code: int | None = None
    run_id: str = ""
    kept: tuple[Entry, ...] = ()
    """Earlier predictions that this run has tested."""
    records: dict[str, TrackRecord] = field(default_factory=dict)
    """Rule → how good its predictions have been so far, for the rules that fired here."""
    seen: Seen = Seen.UNKNOWN
    """How far the processes got, if no training was seen."""
    others: tuple[Report, ...] = ()
    """The command's other trainings, in the order they began."""

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
            "track_records": list(self.records.values()),
            "gpumon": __version__,
        }
        if run is None:
            answer["seen"] = self.seen.value
        if run is not None and lead is not None:
            answer |= _figures(run) | {"loader": lead.loader, "overhead_ratio": lead.overhead_ratio}
        plain: dict[str, Any] = msgspec.to_builtins(answer)
        if self.others:
            plain["other_trainings"] = [other.as_json() for other in self.others]
        return plain


def _figures(run: Run) -> dict[str, Any]:
    return {
        "started": run.started,
        "ended": run.ended,
        "setup_seconds": run.setup_seconds,
        "steps": run.steps,
        "lost": run.lost,
        "batch_size": run.batch_size,
        "framework": run.framework,
        "step_seconds": run.step,
        "iterations_per_second": run.iterations_per_second,
        "micro_batches": run.micro_batches,
        "micro_batches_per_second": run.micro_batches_per_second,
        "samples_per_second": run.samples_per_second,
        "tokens_per_second": run.tokens_per_second,
        "phases": run.phases,
        "stalls": run.stalls,
        "criticality": run.criticality,
        "starved_ratio": run.starved_ratio,
        "trend_ratio": run.trend_ratio,
        "ranks": [_rank(rank) for rank in run.ranks],
        "config": run.config,
    }


def _rank(rank: Rank) -> dict[str, Any]:
    return {
        "rank": rank.rank,
        "state": rank.state,
        "step_seconds": rank.step,
        "device": rank.device_times if rank.device_times.time else None,
        "other_devices": rank.other_devices,
    }


def find_run(snapshot: Snapshot | None, run_id: str) -> Run | None:
    """The command's training with the most steps."""
    return max(trainings(snapshot, run_id), key=lambda run: run.steps, default=None)


def trainings(snapshot: Snapshot | None, run_id: str) -> list[Run]:
    """Every training of the command that claimed `run_id`, in the order they began: a script may train
    several models or start several processes."""
    found = [run for run in snapshot.runs if is_run(run, run_id)] if snapshot else []
    return sorted(found, key=lambda run: run.started)


def is_run(run: Run, run_id: str) -> bool:
    """Whether this is our run that claimed `run_id`, with or without a number appended. A daemon of another
    user knows it by this id and its owner."""
    ours = run.owner_uid in (None, own_uid())
    return _claims(run.id, run_id) or (ours and _claims(run.claimed_id or "", run_id))


def _claims(found: str, run_id: str) -> bool:
    number = found.removeprefix(f"{run_id}-")
    return found == run_id or (number != found and number.isdecimal())


def make_report(
    snapshot: Snapshot | None, run_id: str, exit_code: int | None, seen: Seen = Seen.UNKNOWN
) -> Report:
    """The report on one command, from a snapshot: on its longest training, followed by the others."""
    run = find_run(snapshot, run_id)
    if run is not None and seen is Seen.TRAINING:
        seen = Seen.TORCH  # its ring is there: it has no step
    if snapshot is None or run is None or not run.steps:
        return Report(run, (), _never_trained(exit_code, seen), None, exit_code, run_id, seen=seen)
    others = [one for one in trainings(snapshot, run_id) if one is not run and one.steps]
    report = _training(run, snapshot, exit_code)
    return replace(report, others=tuple(_training(one, snapshot, exit_code) for one in others))


def _training(run: Run, snapshot: Snapshot, exit_code: int | None) -> Report:
    findings = facts.findings_of(run, snapshot.findings)
    verdict = run.verdict or Verdict("unknown", steps=run.steps, lost=run.lost)
    return Report(run, findings, verdict.text(), run.combined, exit_code, run.id)


def _never_trained(exit_code: int | None, seen: Seen) -> str:
    end = f" (the command ended with exit code {exit_code})" if exit_code else ""
    if seen is Seen.TRAINING:
        return f"Nothing is left of what was recorded{end}: {seen.sentence()}."
    if seen is Seen.NOT_RECORDED:
        return f"Nothing was recorded{end}: {seen.sentence()}."
    return f"No training was seen{end}: {seen.sentence()}."
