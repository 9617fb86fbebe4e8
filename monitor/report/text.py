"""The closing summary of `gpumon run`: a verdict, where the time went, what to change. Plain text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TextIO

from monitor.language import cells, said, word
from monitor.model import criticality
from monitor.model.devices import by_device
from monitor.model.errors import UserError
from monitor.model.facts import promises
from monitor.model.finding import EFFECT_WORDS, Finding, Remedy
from monitor.model.phase_names import apart
from monitor.model.run import Phase, Run
from monitor.model.units import filled, gain, gain_range, number, percent, seconds, visible, whole
from monitor.report.report import Report
from monitor.terminal import PLAIN, Terminal, code, hints, ruled, wrapped

BAR = 24
WIDEST = 100
"""Columns: longer lines are hard to read."""
FINDINGS_SHOWN = 5
CODE_INDENT = "    "
LONGEST_COMMAND = 30
MARKS = {"critical": "!!", "warning": "! ", "hint": "· ", "healthy": "ok"}


def show(report: Report, out: TextIO) -> None:
    """Write the summary; a closed terminal or a full disk is no reason to fail."""
    on = Terminal(out)
    try:
        out.write("\n" + "\n".join(render(report, min(WIDEST, on.width or WIDEST), on)) + "\n")
        out.flush()
    except (OSError, ValueError):
        return


def write_json(report: Report, target: str) -> None:
    """Write the report as JSON to a file, or to stdout for "-"."""
    text = json.dumps(report.as_json(), indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write the report to {target}: {error.strerror}") from error


def render(report: Report, width: int, on: Terminal = PLAIN) -> Iterator[str]:
    """The summary, line by line."""
    yield _head(report.run, width)
    worst = report.findings[0].severity if report.findings else "hint"
    yield from (on.paint(line, worst) for line in wrapped(report.verdict, width, "", ""))
    if report.run is not None and report.run.steps:
        yield from _time(report.run, width, on)
        yield from criticality_lines(report.run, width)
        yield from findings_lines(report, width, on)
        yield from _kept(report)
        yield from _next(report, width, on)
    yield from _others(report, width, on)


def _next(report: Report, width: int, on: Terminal) -> Iterator[str]:
    """What to do next; a run that failed has to be mended before it can be compared."""
    run = report.run.id if report.run is not None else report.run_id
    entries = [(f"gpumon report {run}", "all of this as a page, with charts")]
    if report.run is not None and report.run.state == "ended":
        entries.append((f"gpumon try -- {_command(report.run)}", "let gpumon measure what helps"))
        entries.append((f"gpumon compare {run} last", "after a change: did it help?"))
    yield ""
    yield from hints(entries, width, on)


def _command(run: Run) -> str:
    """As it was given; a long one is left to the reader."""
    command = run.command or ""
    return command if 0 < len(command) <= LONGEST_COMMAND else "CMD"


def _others(report: Report, width: int, on: Terminal) -> Iterator[str]:
    """The command's other trainings: how each went, and where to read more."""
    for other in report.others:
        yield ""
        yield _head(other.run, width)
        yield from wrapped(other.verdict, width, "", "")
        if other.run is not None:
            yield from _time(other.run, width, on)
        yield f"  gpumon report {other.run_id}"


def _head(run: Run | None, width: int) -> str:
    if run is None:
        return ruled("gpumon", width)
    parts = ["gpumon", run.name, f"{whole(run.steps)} steps"]
    if run.ended is not None and run.training_seconds is not None:
        parts.append(f"in {seconds(run.training_seconds)}")
    if run.interrupted:
        parts.append("interrupted")
    if run.framework:
        parts.append(f"by {run.framework}")
    if run.micro_batches_per_second and run.micro_batches:
        micro = f"{number(run.micro_batches_per_second)} micro-batches/s"
        parts.append(f"{number(run.iterations_per_second)} steps/s, {micro}")
    if run.samples_per_second:
        parts.append(f"{number(run.samples_per_second)} samples/s")
    return ruled("  ".join([*parts[:2], *map(said, parts[2:])]), width)


def _time(run: Run, width: int, on: Terminal) -> Iterator[str]:
    """A bar per phase, the longest first."""
    shown = sorted((phase for phase in run.phases if visible(phase.share)), key=lambda p: -p.share)
    if not shown:
        return
    names = [phase.name for phase in shown]
    mean, median = seconds(run.mean_step_seconds), seconds(run.step.p50)
    yield ""
    went = f"Where the time went (a step takes {mean} on average, median {median}{apart(names)}):"
    yield from wrapped(went, width, "", "")
    for phase in shown:
        line = _bar(phase, on)
        note = _note(run, phase)
        yield line + note if len(line + note) <= width else line
    if run.lost:
        yield f"  {whole(run.lost)} of {whole(run.steps)} steps could not be read"
    if devices := by_device(run):
        yield f"  {devices}: each by itself; one may wait for another"


def _bar(phase: Phase, on: Terminal) -> str:
    bar = (on.block * filled(phase.share, BAR)).ljust(BAR, on.blank)
    name, share = cells.left(word(phase.name), 11), percent(phase.share)
    return f"  {name}{bar} {share:>5}  {seconds(phase.mean_seconds):>8}"


def _note(run: Run, phase: Phase) -> str:
    """Explains a phase whose name does not."""
    forward = any(one.name == "forward" and visible(one.share) for one in run.phases)
    own = "own code in the step" if forward else "forward, own code"
    return {"other": f"  {own}", "between": "  own code between steps"}.get(phase.name, "")


def criticality_lines(run: Run, width: int) -> Iterator[str]:
    """Of a run that was probed."""
    if not run.criticality:
        return
    yield ""
    yield from wrapped(f"{criticality.HEADING}:", width, "", "")
    for place, slope, judgement in criticality.rows(run.criticality):
        lead = f"  {cells.left(word(place), 27)} {cells.left(word(slope), 12)}  "
        yield from wrapped(f"{lead}{word(judgement)}", width, "", " " * 44)


def findings_lines(report: Report, width: int, on: Terminal = PLAIN) -> Iterator[str]:
    """The findings, numbered, each with its remedy and predicted gain."""
    findings = [finding for finding in report.findings if finding.severity != "healthy"]
    if not findings:
        return
    yield ""
    for place, finding in enumerate(findings[:FINDINGS_SHOWN], 1):
        yield from _finding(place, finding, said(_gain(finding)) + said(_record(report, finding)), width, on)
    left = len(findings) - FINDINGS_SHOWN
    if left > 0:
        yield f"  … and {left} more: gpumon show {report.run_id}"


def _kept(report: Report) -> Iterator[str]:
    """Predictions made for an earlier run of this script, and how they turned out."""
    if report.kept:
        yield ""
    for entry in report.kept:
        predicted = gain_range(entry.low, entry.likely, entry.high)
        realised = gain(entry.realised)
        changed = f" ({entry.changed})" if entry.changed else ""
        yield f"Applied since {entry.run}{changed}: {entry.rule}, predicted {predicted}, realised {realised}"


def _record(report: Report, finding: Finding) -> str:
    """How often this rule was right before, on this kind of machine."""
    record = report.records.get(finding.id)
    if record is None:
        return ""
    return f", {record.inside} of {record.realised} earlier predictions came true on {record.host_kind}"


def _finding(place: int, finding: Finding, gain: str, width: int, on: Terminal) -> Iterator[str]:
    head = f"{place} {MARKS[finding.severity]}{finding.id}{gain}"
    yield on.paint(head, finding.severity)
    yield from wrapped(finding.title, width, "  ")
    yield from wrapped(f"→ {said(finding.remedy.summary)}", width, "  ")
    yield from code(finding.remedy.change, width, CODE_INDENT)
    told = _about_training(finding.remedy)
    if told:
        yield from wrapped(told, width, "  ")


def _about_training(remedy: Remedy) -> str:
    """What the remedy does to the training, what it costs, and what not to do."""
    effect = f"Effect: {EFFECT_WORDS[remedy.effect]}." if remedy.effect else ""
    price = f"Price: {remedy.price}." if remedy.price else ""
    avoid = f"Avoid: {remedy.avoid[:1].lower()}{remedy.avoid[1:]}" if remedy.avoid else ""
    return " ".join(part for part in (effect, price, avoid) if part)


def _gain(finding: Finding) -> str:
    speedup = finding.speedup
    if speedup is None or not promises(finding):
        return ""
    note = f", {speedup.note}" if speedup.note else ""
    return f"   predicted {gain_range(speedup.low, speedup.likely, speedup.high)}{note}"
