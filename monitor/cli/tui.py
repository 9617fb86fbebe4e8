"""`gpumon tui`: the screen beside the training."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from monitor import settings
from monitor.client import CONNECT_VARIABLE
from monitor.errors import UserError

OWN_OPTIONS = ("source", "gpus", "scenario", "dir", "interval", "policy", "store")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--connect",
        metavar="URL",
        action="append",
        default=[],
        help="a daemon to show; may be given several times",
    )
    parser.add_argument(
        "--hosts", metavar="FILE", type=Path, help="file with daemons to show, one a line: URL, or NAME URL"
    )
    parser.add_argument("--readonly", action="store_true", help="no signals to processes")
    parser.add_argument(
        "--theme",
        metavar="NAME",
        help="gpumon-dark, gpumon-light, gpumon-contrast, ansi-dark, ansi-light, or any of Textual's",
    )
    parser.add_argument(
        "--ascii", action="store_true", help="plain characters only (chosen by itself without UTF-8)"
    )
    parser.add_argument("--screenshot", metavar="FILE", type=Path, help="write one SVG picture and leave")
    parser.add_argument(
        "--size", metavar="COLSxROWS", default="120x40", help="size of the screenshot (default 120x40)"
    )
    parser.add_argument(
        "--after",
        metavar="SECONDS",
        type=float,
        default=3.0,
        help="how long to watch before the screenshot (default 3)",
    )
    settings.add_options(parser, OWN_OPTIONS)


def run(args: argparse.Namespace) -> int:
    size = _size(args.size) if args.screenshot else None
    if args.screenshot is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            "gpumon tui needs a terminal",
            hint="gpumon status prints the same as text; --screenshot FILE writes a picture",
        )
    from monitor.tui.start import build

    app = build(
        _hosts(args),
        settings.load(args),
        own=_asks_for_own(args),
        theme=args.theme,
        ascii_only=args.ascii,
        readonly=args.readonly,
    )
    if args.screenshot is not None and size is not None:
        from monitor.tui.start import picture

        return picture(app, args.screenshot, size, args.after)
    app.run()
    app.keep_layout()
    return app.return_code or 0


def _hosts(args: argparse.Namespace) -> Sequence[tuple[str, str | None]]:
    """URLs with names; a named daemon need not answer, one that does not is shown as such."""
    from monitor.tui.feed import hosts_file

    named: list[tuple[str, str | None]] = [(url, None) for url in args.connect]
    if args.hosts is not None:
        named += hosts_file(args.hosts)
    given = os.environ.get(CONNECT_VARIABLE)
    return named or ([(given, None)] if given else [])


def _asks_for_own(args: argparse.Namespace) -> bool:
    """``gpumon tui --source simulated`` is about readings of its own, not the daemon's."""
    asked = args.option_source is not None or args.option_scenario is not None
    return asked and not os.environ.get(CONNECT_VARIABLE)


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.lower().partition("x")
    if not (columns.isdigit() and rows.isdigit() and 40 <= int(columns) <= 500 and 10 <= int(rows) <= 200):
        raise UserError(f"{text!r} is not a size", hint="columns x rows, like 120x40")
    return int(columns), int(rows)
