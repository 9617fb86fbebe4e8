"""The closing words of `gpumon run`: a verdict, where the time went, what to change. Plain text."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from typing import TextIO

from monitor.advice.finding import percent, seconds
from monitor.errors import UserError
from monitor.snapshot import Finding, Phase, Run
from monitor.summary import Report

BAR = 28
FINDINGS_SHOWN = 5
LEAST_SHARE = 0.005
CODE_INDENT = "    "
UNITS = re.compile(r"(?<=\d) (?=(%|µs|ms|s|[KMGT]?i?B)\b|%)")
MARKS = {"critical": "!!", "warning": "! ", "hint": "· ", "healthy": "ok"}
COLORS = {"critical": "31;1", "warning": "33;1", "hint": "36", "healthy": "32;1"}


def show(report: Report, out: TextIO) -> None:
    """Write the summary; a closed terminal is no reason to fail."""
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    paint = _Paint(out)
    try:
        out.write("\n" + "\n".join(render(report, max(50, width), paint)) + "\n")
        out.flush()
    except (BrokenPipeError, ValueError):
        return


def write_json(report: Report, target: str) -> None:
    """The report as JSON into a file, or to stdout for "-"."""
    text = json.dumps(report.as_json(), indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write the report to {target}: {error.strerror}") from error


class _Paint:
    """Colour and block characters where the terminal has them."""

    def __init__(self, out: TextIO | None) -> None:
        tty = out is not None and out.isatty()
        self.colored = tty and not os.environ.get("NO_COLOR")
        encoding = (getattr(out, "encoding", None) or "utf-8").lower()
        self.block, self.blank = ("█", "·") if encoding.startswith("utf") else ("#", ".")

    def __call__(self, text: str, color: str) -> str:
        return f"\x1b[{color}m{text}\x1b[0m" if self.colored else text


def render(report: Report, width: int, paint: _Paint | None = None) -> Iterator[str]:
    """The summary, line by line."""
    paint = paint or _Paint(None)
    yield _head(report.run, width)
    worst = report.findings[0].severity if report.findings else "hint"
    yield from (paint(line, COLORS[worst]) for line in _wrapped(report.verdict, width, "", ""))
    if report.run is not None and report.run.steps:
        yield from _time(report.run, paint)
        yield from findings_lines(report, width, paint)
        yield from _kept(report)


def _head(run: Run | None, width: int) -> str:
    if run is None:
        return _ruled("gpumon", width)
    parts = ["gpumon", run.name, f"{run.steps:,} steps"]
    if run.ended and run.first_step_time:
        parts.append(f"in {seconds(run.ended - run.first_step_time)}")
    if run.samples_per_second:
        parts.append(f"{run.samples_per_second:,.0f} samples/s")
    return _ruled("  ".join(parts), width)


def _ruled(text: str, width: int) -> str:
    return f"── {text} " + "─" * max(0, width - len(text) - 4)


def _time(run: Run, paint: _Paint) -> Iterator[str]:
    """A bar per phase, the longest first."""
    shown = sorted((phase for phase in run.phases if phase.share >= LEAST_SHARE), key=lambda p: -p.share)
    if not shown:
        return
    whole = sum(phase.mean_seconds for phase in run.phases)
    yield ""
    yield f"Where the time went ({seconds(whole)} a step, begin to begin, median {seconds(run.step.p50)}):"
    for phase in shown:
        yield _bar(phase, paint) + _note(run, phase)
    if run.lost:
        yield f"  {run.lost:,} of {run.steps:,} steps could not be read"


def _bar(phase: Phase, paint: _Paint) -> str:
    full = max(1, round(phase.share * BAR))
    bar = paint.block * full + paint.blank * (BAR - full)
    return f"  {phase.name:<11}{bar} {percent(phase.share):>5}  {seconds(phase.mean_seconds):>8}"


def _note(run: Run, phase: Phase) -> str:
    """What is in a phase whose name does not say it."""
    forward = any(one.name == "forward" and one.share >= LEAST_SHARE for one in run.phases)
    own = "own code in the step" if forward else "forward, own code"
    return {"other": f"  {own}", "between": "  own code between steps"}.get(phase.name, "")


def findings_lines(report: Report, width: int, paint: _Paint | None = None) -> Iterator[str]:
    """The findings, numbered, each with its remedy and predicted gain."""
    paint = paint or _Paint(None)
    findings = [finding for finding in report.findings if finding.severity != "healthy"]
    if not findings:
        return
    yield ""
    for number, finding in enumerate(findings[:FINDINGS_SHOWN], 1):
        yield from _finding(number, finding, _gain(finding) + _record(report, finding), width, paint)
    left = len(findings) - FINDINGS_SHOWN
    if left > 0:
        yield f"  … and {left} more: gpumon show {report.run_id}"


def _kept(report: Report) -> Iterator[str]:
    """Promises made to an earlier run of this script, and what came of them."""
    if report.kept:
        yield ""
    for entry in report.kept:
        yield (
            f"Applied since {entry.run}: {entry.rule}, predicted ×{entry.likely:.2f} "
            f"({entry.low:.2f}–{entry.high:.2f}), realised ×{entry.realised or 1.0:.2f}"
        )


def _record(report: Report, finding: Finding) -> str:
    """How often this rule was right before."""
    for record in report.records:
        if record.rule == finding.id:
            return f", {record.inside} of {record.realised} earlier predictions came true"
    return ""


def _finding(number: int, finding: Finding, gain: str, width: int, paint: _Paint) -> Iterator[str]:
    head = f"{number} {MARKS[finding.severity]}{finding.id}{gain}"
    yield paint(head, COLORS[finding.severity])
    yield from _wrapped(finding.title, width, "  ")
    yield from _wrapped(f"→ {finding.remedy.summary}", width, "  ")
    for line in finding.remedy.change.splitlines():
        yield from _code(line, width)


def _code(line: str, width: int) -> list[str]:
    """A line of a change, broken where it is too long for the terminal."""
    if len(line) + len(CODE_INDENT) <= width:
        return [CODE_INDENT + line]
    lead = CODE_INDENT + line[: len(line) - len(line.lstrip("+- "))] + "    "
    return textwrap.wrap(line, width, initial_indent=CODE_INDENT, subsequent_indent=lead)


def _gain(finding: Finding) -> str:
    speedup = finding.speedup
    if speedup is None or speedup.high < 1.02:
        return ""
    return f"   predicted ×{speedup.likely:.2f} ({speedup.low:.2f}–{speedup.high:.2f})"


def _wrapped(text: str, width: int, indent: str, hang: str = "  ") -> list[str]:
    """Lines of the width; a number stays with its unit."""
    tied = UNITS.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(tied, width, initial_indent=indent, subsequent_indent=indent + hang)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
