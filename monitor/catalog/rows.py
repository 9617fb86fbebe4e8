"""Runs as a list: live and past ones together, and finding the one a user means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from monitor.model import facts
from monitor.model.errors import UserError
from monitor.model.finding import Finding
from monitor.model.history import RunRecord
from monitor.model.owner import own_uid
from monitor.model.run import Run, Trend

AHEAD_SECONDS = 60.0
"""Chosen: what a clock may be corrected by in everyday use."""


class RunRow(msgspec.Struct, frozen=True):
    """One line of `gpumon runs --json`; the first eight keys are guaranteed to stay."""

    run: str
    name: str
    state: str
    ranks: int
    steps: int
    lost: int
    started: float
    samples_per_s: float | None = None
    ended: float | None = None
    iterations_per_s: float | None = None
    step_p50_s: float | None = None
    trend_ratio: float | None = None
    trend: Trend | None = None
    elapsed_seconds: float | None = None
    """From start to end; for an unfinished run, until it was last seen."""
    gpus: int = 0
    hostname: str | None = None
    user: str | None = None
    owner_uid: int | None = None
    script: str | None = None
    way: str | None = None
    findings: tuple[str, ...] = ()
    """Ids, most important first."""
    slurm_job: str | None = None
    pod: str | None = None


def row(record: RunRecord) -> RunRow:
    run = record.run
    return RunRow(
        run=run.id,
        name=run.name,
        state=run.state,
        ranks=len(run.ranks),
        steps=run.steps,
        lost=run.lost,
        started=run.started,
        samples_per_s=run.samples_per_second,
        ended=run.ended,
        iterations_per_s=run.iterations_per_second,
        step_p50_s=run.step.p50,
        trend_ratio=run.trend_ratio,
        trend=run.trend,
        elapsed_seconds=run.elapsed_seconds,
        gpus=len(run.gpu_uuids),
        hostname=run.hostname,
        user=run.user,
        owner_uid=run.owner_uid,
        script=run.script,
        way=run.way,
        findings=tuple(finding.id for finding in record.findings),
        slurm_job=run.slurm_job,
        pod=run.pod,
    )


def shown(record: RunRecord) -> dict[str, Any]:
    """Everything about one run, as returned by `gpumon show --json` and the API."""
    body: dict[str, Any] = {"run": record.run.id, **msgspec.to_builtins(record.run)}
    return {**body, "updated": record.updated, "findings": msgspec.to_builtins(record.findings)}


def from_shown(body: dict[str, Any]) -> RunRecord:
    """The inverse of `shown`. Raises `UserError` if the body is not a run."""
    try:
        findings = msgspec.convert(body.get("findings", ()), tuple[Finding, ...])
        return RunRecord(msgspec.convert(body, Run), findings, float(body.get("updated", 0.0)))
    except msgspec.MsgspecError as error:
        raise UserError(f"this is not a gpumon run: {error}") from error


def together(
    live: Iterable[Run], findings: Sequence[Finding], past: Iterable[RunRecord], now: float
) -> list[RunRecord]:
    """What is in view now plus what only the history knows, newest first. A finished run is shown as last
    seen while it ran: its rings, reread afterwards, know nothing about the machine it ran on."""
    found = {_whose(record.run): record for record in past}
    for run in live:
        kept = found.pop((run.id, None), None) or found.get(_whose(run))  # older histories stored no owner
        if kept is None or not _is_last_word(kept.run, run):
            kept = RunRecord(run, facts.own_findings(run, findings), now)
        found[_whose(run)] = kept
    return sorted(found.values(), key=lambda record: _recent(record.run, now), reverse=True)


def _recent(run: Run, now: float) -> tuple[bool, float]:
    """How far up the list a run belongs. What was recorded while the clock was ahead is dated in the future:
    when it was is not known, only that what began since is newer."""
    return run.state in facts.LIVE or run.started <= now + AHEAD_SECONDS, run.started


def _is_last_word(kept: Run, run: Run) -> bool:
    """Nothing happened after it was stored."""
    return not run.live and kept.state == run.state and kept.steps >= run.steps


def _whose(run: Run) -> tuple[str, int | None]:
    return run.id, run.owner_uid


def find(rows: Sequence[RunRow], wanted: str) -> RunRow:
    """By id, start of an id, name (its latest run), or ``last``. `rows`: newest first. Raises `UserError`."""
    if not rows:
        raise UserError("there is no run yet", hint="start one with: gpumon run -- python train.py")
    if wanted == "last":
        return rows[0]
    if wanted.startswith("last~") and wanted[5:].isdigit() and int(wanted[5:]) < len(rows):
        return rows[int(wanted[5:])]
    own = f"{wanted}@{own_uid()}"  # its id in a daemon of another user
    exact = (
        [one for one in rows if one.run == wanted]
        or [one for one in rows if one.run == own]
        or [one for one in rows if one.name == wanted]
    )
    if exact:
        return exact[0]
    begins = [one for one in rows if one.run.startswith(wanted)] if wanted else []
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise UserError(f"{wanted!r} matches {len(begins)} runs: {_some(one.run for one in begins)}")
    near = difflib.get_close_matches(wanted, [*{one.name for one in rows}, *(one.run for one in rows)])
    raise UserError(
        f"there is no run {wanted!r}" + (f"; similar: {_some(near)}" if near else ""),
        hint="list them with gpumon runs; use an id, the start of one, a name, or last",
    )


def _some(names: Iterable[str], most: int = 5) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")
