"""`gpumon compare A B`: is B faster, how certain is that, where, and as much as predicted?"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

from monitor.catalog.dossier import gather
from monitor.cli import run_source
from monitor.cli.run_source import RunSource
from monitor.cli.written import write_file
from monitor.comparison.compare_runs import Comparison
from monitor.comparison.figures import figures
from monitor.comparison.realised import Realised
from monitor.comparison.words import fate, verdict
from monitor.model.errors import EXIT_FAILED, EXIT_OK, UserError
from monitor.model.snapshot import encode
from monitor.model.units import (
    ABSENT,
    gain,
    gain_range,
    seconds,
    signed_seconds,
)
from monitor.terminal import PLAIN, Terminal, table, wrapped

TONES = {"faster": "healthy", "slower": "critical", "same": "hint", "unsure": "hint"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the run before: id, beginning of an id, name, last or last~1")
    parser.add_argument("b", metavar="B", help="the run after")
    parser.add_argument(
        "--fail-below", type=_bar, metavar="R", help="exit 1 when B's rate is below R times A's (CI: 0.95)"
    )
    parser.add_argument("--html", metavar="FILE", help="write it as one HTML file (- is stdout)")
    run_source.configure(parser)


def _bar(text: str) -> float:
    try:
        bar = float(text)
    except ValueError:
        bar = 0.0
    if not 0.0 < bar < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return bar


def run(args: argparse.Namespace) -> int:
    with run_source.open_runs(args, write=True) as source:
        found = source.compare(args.a, args.b)
        if found.one_run:
            hint = "last~1 is the run before the newest; gpumon runs lists them"
            raise UserError(f"A and B are the same run, {found.a.run}", hint=hint)
        page = _page(source, found) if args.html else ""
    if args.html:
        write_file(page, args.html)
    if args.json:
        sys.stdout.write(encode(found).decode() + "\n")
    elif args.html != "-":
        print("\n".join(render(found, Terminal(sys.stdout))))
    if args.html and args.html != "-":
        print(Path(args.html).resolve(), file=sys.stderr)
    return _exit_code(found, args.fail_below)


def _page(source: RunSource, found: Comparison) -> str:
    from monitor.document.compare_page import compare_page

    return compare_page(found, gather(source, found.a.run), gather(source, found.b.run))


def _exit_code(found: Comparison, bar: float | None) -> int:
    if bar is None:
        return EXIT_OK
    if found.speedup is None:
        raise UserError("the two runs have no rate to compare: too few steps", code=EXIT_FAILED)
    if found.speedup < bar:
        print(f"gpumon: {gain(found.speedup)} is below the bar of {gain(bar)}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def render(found: Comparison, on: Terminal = PLAIN) -> Iterator[str]:
    yield from (on.paint(line, TONES[found.verdict]) for line in wrapped(verdict(found), on.width))
    for warning in found.warnings:
        yield from wrapped(f"warning: {warning}", on.width)
    yield ""
    known = [one[:4] for one in figures(found) if (one.a, one.b) != (ABSENT, ABSENT)]
    rows = [("run", found.a.run, found.b.run, ""), *known]
    yield table(("", "A", "B", "B / A"), rows, right=(1, 2, 3), on=on)
    if found.phases:
        yield ""
        rows = [
            (p.name, seconds(p.before_seconds), seconds(p.after_seconds), signed_seconds(-p.saved_seconds))
            for p in found.phases
        ]
        yield table(("a step, by phase", "A", "B", "change"), rows, right=(1, 2, 3), on=on)
    if found.realised:
        yield ""
        fates = [_fate(one) for one in found.realised]
        yield table(("gone in B", "predicted", "realised"), fates, below=2, on=on)
    for name, ids in (("still there", found.remaining), ("new in B", found.new)):
        if ids:
            yield from wrapped(f"{name}: {', '.join(ids)}", on.width)


def _fate(one: Realised) -> tuple[str, str, str]:
    promise = one.predicted
    promised = gain_range(promise.low, promise.likely, promise.high) if promise else ABSENT
    return one.id, promised, fate(one)
