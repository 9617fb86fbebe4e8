"""`gpumon doctor`: check this machine and say how to fix what is wrong."""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from monitor import __version__
from monitor.doctor.check import Check, Context, Result, all_checks, run_check
from monitor.language import said
from monitor.model import settings
from monitor.model.errors import EXIT_FAILED, EXIT_OK, UserError
from monitor.terminal import PLAIN, Terminal, wrapped

OPTIONS = ("dir", "listen", "socket", "store", "web_config")
WORDS = (("PASS", "passed"), ("WARN", "warning(s)"), ("FAIL", "failed"), ("SKIP", "skipped"))
WIDEST = 100
"""Widest text, also when piped."""
TONES = {"PASS": "healthy", "WARN": "warning", "FAIL": "critical", "SKIP": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--deep", action="store_true", help="also start torch, in a separate process")
    parser.add_argument(
        "--calibrate", action="store_true", help="measure what work costs here, with no training running"
    )
    parser.add_argument(
        "--gpu-selftest",
        action="store_true",
        help="run five loops with known answers on the GPU and say what held; writes a file to send us",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the self-test's file")
    parser.add_argument("--python", metavar="PATH", help="the interpreter that trains (default: ours)")
    parser.add_argument("--only", metavar="ID", action="append", help="run this check only; may be repeated")
    parser.add_argument("--connect", metavar="URL", help="the daemon to check (default: as every command)")
    parser.epilog = "exit code 1 when a check or a loop of the self-test fails"
    settings.add_options(parser, OPTIONS)


def run(args: argparse.Namespace) -> int:
    if args.gpu_selftest:
        from monitor.cli import gpu_selftest  # only here: it watches runs

        return gpu_selftest.run(args.python, args.output, as_json=args.json)
    context = Context(
        settings.load(args),
        connect=args.connect,
        deep=args.deep,
        calibrate=args.calibrate,
        python=args.python,
    )
    results = [(item, run_check(item, context)) for item in chosen(args.only)]
    print(as_json(results) if args.json else as_text(results, Terminal(sys.stdout)))
    return EXIT_FAILED if any(result.status == "FAIL" for _, result in results) else EXIT_OK


def chosen(only: Sequence[str] | None) -> list[Check]:
    """All checks, or those named. An unknown id is an error that lists the known ones."""
    known = {item.id: item for item in all_checks()}
    for name in only or ():
        if name not in known:
            raise UserError(f"there is no check {name!r}", hint=f"checks are: {', '.join(known)}")
    return [item for item in known.values() if not only or item.id in only]


def as_json(results: Sequence[tuple[Check, Result]]) -> str:
    counts = count(results)
    document: dict[str, Any] = {
        "ok": counts["FAIL"] == 0,
        "version": __version__,
        "hostname": socket.gethostname(),
        "time": time.time(),
        "counts": counts,
        "checks": [{"id": item.id, "title": item.title, **asdict(result)} for item, result in results],
    }
    return json.dumps(document, indent=2)


def as_text(results: Sequence[tuple[Check, Result]], on: Terminal = PLAIN) -> str:
    """Readable without colour: the status is a word, the remedy is on its own line."""
    width = max(len(item.id) for item, _ in results)
    blocks = [line for item, result in results for line in _block(item, result, width, on)]
    counts = count(results)
    summary = ", ".join(said(f"{counts[status]} {name}") for status, name in WORDS if counts[status])
    return "\n".join([*blocks, "", f"{len(results)} check(s): {summary}"])


def _block(item: Check, result: Result, width: int, on: Terminal) -> Iterator[str]:
    indent, room = " " * (width + 8), min(WIDEST, on.width or WIDEST)
    first, *more = wrapped(f"{result.status}  {item.id:<{width}}  {said(result.detail)}", room, hang=indent)
    status = on.paint(result.status, TONES[result.status])
    yield status + first.removeprefix(result.status)
    yield from more
    if result.remedy:
        yield from wrapped(f"remedy: {result.remedy}", room, indent)


def count(results: Sequence[tuple[Check, Result]]) -> dict[str, int]:
    found = Counter(result.status for _, result in results)
    return {status: found[status] for status, _ in WORDS}  # type: ignore[index]
