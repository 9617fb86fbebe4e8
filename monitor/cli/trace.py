"""`gpumon trace FILE …`: what a profiler trace shows, and what to change."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from msgspec import Struct

from monitor.cli.trace_text import render
from monitor.model.errors import UserError
from monitor.model.finding import Finding
from monitor.model.snapshot import encode
from monitor.traces import Trace, TraceReport, analyse, diagnose, read
from monitor.traces.ranks import late_rank
from monitor.traces.report import LateRank


class Answer(Struct, frozen=True):
    """What `--json` prints."""

    findings: tuple[Finding, ...]
    late_rank: LateRank | None
    """None with one rank, or if the ranks' collectives cannot be compared."""
    reports: tuple[TraceReport, ...]
    schema: int = 1


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="traces of torch.profiler (.json or .json.gz), one per rank"
    )
    parser.add_argument("--json", action="store_true", help="everything, machine-readable")
    parser.add_argument("--rank", type=int, metavar="N", help="whose details to show (default: the idlest)")
    parser.add_argument(
        "--last-step",
        action="store_true",
        help="count the last profiler step too, in which the profiler stops",
    )


def run(args: argparse.Namespace) -> int:
    answer = judge([read(file) for file in args.files], last_step=args.last_step)
    written = text(answer, args.rank)  # also with --json: asking for a missing rank is an error
    sys.stdout.write((encode(answer).decode() if args.json else written) + "\n")
    return 0


def judge(traces: Sequence[Trace], *, last_step: bool = False) -> Answer:
    """The joint diagnosis of several ranks."""
    reports = [analyse(trace, rank=at, last_step=last_step) for at, trace in enumerate(traces)]
    _check_ranks(reports)
    reports.sort(key=lambda report: report.rank)
    return Answer(tuple(diagnose(reports)), late_rank(reports), tuple(reports))


def text(answer: Answer, rank: int | None = None) -> str:
    """The text version, with the details of one rank."""
    return "\n".join(render(answer.reports, answer.findings, _detailed(answer.reports, rank)))


def _check_ranks(reports: Sequence[TraceReport]) -> None:
    seen: dict[int, str] = {}
    for report in reports:
        if report.rank in seen:
            raise UserError(
                f"{seen[report.rank]} and {report.source} are both from rank {report.rank}",
                hint="give one file per rank, all of the same steps",
            )
        seen[report.rank] = report.source


def _detailed(reports: Sequence[TraceReport], rank: int | None) -> TraceReport:
    """The report to show in full."""
    if rank is None:
        return max(reports, key=lambda report: report.devices[0].temporal.idle_ratio)
    found = next((report for report in reports if report.rank == rank), None)
    if found is None:
        raise UserError(f"none of the files is of rank {rank}")
    return found
