"""`gpumon export RUN`: single steps of a run for other programs: CSV, JSON Lines, Parquet, or a trace."""

from __future__ import annotations

import argparse
import sys

from monitor.cli import run_source
from monitor.cli.run_source import RunSource
from monitor.document.export import FORMATS, Format, export
from monitor.model.errors import UserError
from monitor.model.units import whole
from monitor.store.chunks import Steps
from monitor.store.history import MAX_STEPS

ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".json": "trace",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id, beginning of an id, name, last or last~1")
    parser.add_argument("--format", choices=FORMATS, help="default: by the file's name, else csv")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="where to (default: -, stdout)")
    parser.add_argument(
        "--rank", type=int, default=0, metavar="N", help="the rank whose steps to export (default: 0)"
    )
    run_source.configure(parser, json=False)


def run(args: argparse.Namespace) -> int:
    with run_source.open_runs(args) as source:
        of = source.record(args.run).run
        steps = all_steps(source, of.id, args.rank)
    if not steps.step:
        raise UserError(
            f"no per-step records of rank {args.rank} of {of.id} were kept",
            hint="a daemon keeps them, and so does gpumon run",
        )
    form = args.format or _by_name(args.output)
    _write(export(steps, of, args.rank, form), args.output)
    if args.output != "-":
        print(f"{whole(len(steps.step))} steps to {args.output}, as {form}", file=sys.stderr)
    return 0


def all_steps(source: RunSource, run: str, rank: int) -> Steps:
    """Page by page: a long run has more steps than one response holds."""
    found = source.steps(run, rank=rank)
    page = found
    while len(page.step) >= MAX_STEPS:
        page = source.steps(run, rank=rank, after=page.step[-1])
        found.append(page)
    return found.finish()


def _by_name(target: str) -> Format:
    return next((form for ending, form in ENDINGS.items() if target.endswith(ending)), "csv")


def _write(body: bytes, target: str) -> None:
    if target == "-":
        sys.stdout.buffer.write(body)
        return
    try:
        with open(target, "wb") as file:
            file.write(body)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
