"""A run as Markdown: for an issue, a pull request, a chat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitor.catalog.dossier import Dossier
from monitor.document.time_sections import name_of
from monitor.language import said, word
from monitor.model import criticality
from monitor.model.facts import promises
from monitor.model.finding import EFFECT_WORDS, Finding
from monitor.model.units import (
    gain,
    gain_range,
    label,
    number,
    percent,
    seconds,
    small_percent,
    value_of,
    visible,
    whole,
)

SPECIAL = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[]<>|#"})


def run_markdown(dossier: Dossier) -> str:
    parts = (_head, _spent, _critical, _findings, _kept, _foot)
    return "\n".join(said(line) for part in parts for line in part(dossier)).rstrip() + "\n"


def plain(text: str) -> str:
    """A name or sentence on one line, escaped so that Markdown does not interpret it."""
    return said(" ".join(text.split())).translate(SPECIAL)


def prose(text: str) -> str:
    """A sentence of ours: what is between backticks stays code, the rest is escaped."""
    pieces = said(" ".join(text.split())).split("`")
    if len(pieces) % 2 == 0:
        return plain(text)
    return "`".join(piece if at % 2 else piece.translate(SPECIAL) for at, piece in enumerate(pieces))


def _head(dossier: Dossier) -> Iterator[str]:
    run = dossier.run
    yield f"# {plain(run.name)} ({word(run.state)})"
    yield ""
    yield f"**{prose(dossier.sentence)}**"
    yield ""
    facts = [
        f"`{run.id}`",
        f"{whole(run.steps)} steps in {seconds(run.elapsed_seconds)}",
        f"{number(run.samples_per_second)} samples/s" if run.samples_per_second else "",
        f"median step {seconds(run.step.p50)}, p95 {seconds(run.step.p95)}"
        if run.step.p50 is not None
        else "",
        f"on {plain(run.hostname)}" if run.hostname else "",
    ]
    yield " · ".join(said(fact) for fact in facts if fact)
    yield ""


def rows(head: Sequence[str], body: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Iterator[str]:
    """A table; the columns in `right` are right-aligned."""
    yield "| " + " | ".join(map(word, head)) + " |"
    yield "|" + "|".join("---:" if at in right else "---" for at in range(len(head))) + "|"
    for row in body:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _spent(dossier: Dossier) -> Iterator[str]:
    account = dossier.account
    if not account.parts:
        return
    yield "## Where every second went"
    yield ""
    shown = [
        (plain(word(name_of(part, dossier))), seconds(part.seconds), small_percent(part.share))
        for part in account.parts
        if visible(part.share)
    ]
    yield from rows(("what", "time", "of the run"), shown, right=(1, 2))
    found = account.avoidable
    if found is not None and visible(found.share):
        saved = f"{seconds(found.likely)} of it ({percent(found.share)})"
        yield f"About {saved} would have been saved with every remedy applied."
        yield ""


def _critical(dossier: Dossier) -> Iterator[str]:
    """Of a run that was probed."""
    found = dossier.run.criticality
    if not found:
        return
    yield "## What is critical"
    yield ""
    yield "By short delays: 1, a second saved there is a second won; 0, it is hidden behind something else."
    yield ""
    yield from rows(("where", "slope", "so it is"), criticality.rows(found))


def _findings(dossier: Dossier) -> Iterator[str]:
    if dossier.findings:
        yield "## What to change"
        yield ""
    for place, finding in enumerate(dossier.findings, 1):
        yield from _finding(place, finding, dossier)


def _finding(place: int, finding: Finding, dossier: Dossier) -> Iterator[str]:
    yield f"### {place}. {prose(finding.title)} (`{finding.id}`)"
    yield ""
    speedup, kept = finding.speedup, dossier.promise(finding)
    if speedup is not None and promises(finding):
        came = f", realised {gain(kept.realised)} in `{kept.after_run}`" if kept is not None else ""
        note = f" ({speedup.note})" if speedup.note else ""
        told = f"{gain_range(speedup.low, speedup.likely, speedup.high)}{note}{came}"
        yield f"Predicted {told}." if finding.live else f"Predicted for the next run: {told}."
        yield ""
    yield prose(finding.remedy.summary)
    yield ""
    if finding.remedy.change:
        yield from ("```diff", *finding.remedy.change.replace("```", "'''").splitlines(), "```", "")
    if finding.remedy.effect:
        yield f"- Effect: {EFFECT_WORDS[finding.remedy.effect]}."
    if finding.remedy.price:
        yield f"- Price: {prose(finding.remedy.price)}."
    evidence = ", ".join(
        f"{word(label(key))} {value_of(key, value)}"
        for key, value in finding.evidence.items()
        if value not in (None, "")
    )
    if evidence:
        yield f"- Evidence: {plain(evidence)}."
    yield ""


def _kept(dossier: Dossier) -> Iterator[str]:
    for entry in dossier.kept:
        promised = gain_range(entry.low, entry.likely, entry.high)
        yield f"- Since `{entry.run}`: `{entry.rule}`, predicted {promised}, realised {gain(entry.realised)}."


def _foot(dossier: Dossier) -> Iterator[str]:
    yield ""
    yield f"<sub>gpumon {dossier.gpumon}</sub>"
