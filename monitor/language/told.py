"""Findings and verdicts in the reader's language, for the faces that lay out a whole snapshot or report."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.language import current, said, word
from monitor.model.finding import Finding, FindingGroup, Remedy, Speedup
from monitor.model.gpu import Gpu
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.model.verdict import Verdict


def snapshot(given: Snapshot) -> Snapshot:
    """For people; never for what goes to a program."""
    if current() is None:
        return given
    findings = tuple(map(finding, given.findings))
    return replace(
        given,
        findings=findings,
        groups=tuple(_group(one, findings) for one in given.groups),
        runs=tuple(map(run, given.runs)),
        gpus=tuple(_gpu(one) for one in given.gpus),
        source=replace(given.source, detail=_maybe(given.source.detail)),
    )


def _gpu(given: Gpu) -> Gpu:
    return replace(given, state_detail=_maybe(given.state_detail)) if given.state_detail else given


def _maybe(text: str | None) -> str | None:
    return said(text) if text else text


def run(given: Run) -> Run:
    verdict = given.verdict
    return given if verdict is None or current() is None else replace(given, verdict=_verdict(verdict))


def finding(given: Finding) -> Finding:
    if current() is None:
        return given
    return replace(
        given,
        title=said(given.title),
        headline=said(given.headline),
        cause=word(given.cause),
        why=said(given.why),
        remedy=_remedy(given.remedy),
        speedup=_speedup(given.speedup) if given.speedup else None,
    )


def _remedy(given: Remedy) -> Remedy:
    """Its change is code, and code is the same in every language."""
    return replace(given, summary=said(given.summary), price=said(given.price), avoid=said(given.avoid))


def _speedup(given: Speedup) -> Speedup:
    return replace(given, why=said(given.why))


def _group(given: FindingGroup, findings: tuple[Finding, ...]) -> FindingGroup:
    first = findings[given.findings[0]]
    alone = len(given.findings) == 1
    return replace(given, title=first.title if alone else f"{first.cause}: {given.subject}")


def _verdict(given: Verdict) -> Verdict:
    return replace(given, headline=said(given.headline), remedy=said(given.remedy), note=said(given.note))
