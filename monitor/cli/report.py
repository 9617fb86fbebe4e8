"""`gpumon report RUN`: a run as a document to keep or send: one HTML file, Markdown or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from monitor.catalog.dossier import Dossier, gather
from monitor.cli import run_source
from monitor.cli.written import write_file
from monitor.model.errors import UserError
from monitor.terminal import Terminal, wrapped


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run",
        metavar="RUN",
        nargs="?",
        default="last",
        help="id, beginning of an id, name, last or last~1 (default: last)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to write it (default: NAME.html; - is stdout)"
    )
    parser.add_argument("--md", action="store_true", help="Markdown instead of HTML (default: to stdout)")
    run_source.configure(parser)


def run(args: argparse.Namespace) -> int:
    if args.md and args.json:
        raise UserError("--md and --json cannot be combined")
    with run_source.open_runs(args) as source:
        dossier = gather(source, args.run)
    text, target = _layout(dossier, args)
    write_file(text, target)
    if target != "-":
        said = wrapped(dossier.sentence, Terminal(sys.stderr).width, hang="")
        print("\n".join((*said, str(Path(target).resolve()))), file=sys.stderr)
    return 0


def _layout(dossier: Dossier, args: argparse.Namespace) -> tuple[str, str]:
    """The text, and where it goes."""
    if args.json:
        return json.dumps(dossier.as_json(), indent=2) + "\n", args.output or "-"
    if args.md:
        from monitor.document.markdown import run_markdown

        return run_markdown(dossier), args.output or "-"
    from monitor.document.run_page import run_page

    return run_page(dossier), args.output or f"{file_name(dossier.run.id)}.html"


def file_name(text: str) -> str:
    """An id as part of a file name, sanitised because other users may have chosen it."""
    return (
        "".join(letter if letter.isalnum() or letter in "-_.@" else "-" for letter in text).lstrip(".")
        or "run"
    )
