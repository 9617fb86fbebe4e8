"""`gpumon tui`: watch training in the terminal."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from monitor import language
from monitor.cli import fleet_source
from monitor.model import settings
from monitor.model.address import CONNECT_VARIABLE
from monitor.model.errors import UserError

SIZE = "120x40"
AFTER_SECONDS = 3
MOST_SECONDS = 3600
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
        "--hosts", metavar="FILE", type=Path, help="file with daemons to show, one per line: URL, or NAME URL"
    )
    fleet_source.configure(parser)
    parser.add_argument("--readonly", action="store_true", help="no signals to processes")
    parser.add_argument(
        "--theme",
        metavar="NAME",
        help="gpumon-dark, gpumon-light, gpumon-contrast, ansi-dark, ansi-light, or any of Textual's",
    )
    parser.add_argument(
        "--ascii", action="store_true", help="plain characters only (the default without UTF-8)"
    )
    parser.add_argument("--screenshot", metavar="FILE", type=Path, help="write one SVG screenshot and exit")
    parser.add_argument("--size", metavar="COLSxROWS", help=f"size of the screenshot (default {SIZE})")
    parser.add_argument(
        "--after",
        metavar="SECONDS",
        type=_seconds,
        help=f"how long to watch before the screenshot (default {AFTER_SECONDS})",
    )
    settings.add_options(parser, OWN_OPTIONS)


def run(args: argparse.Namespace) -> int:
    if args.screenshot is None and (args.size is not None or args.after is not None):
        raise UserError("--size and --after are about the screenshot", hint="add --screenshot FILE")
    size = _size(args.size or SIZE) if args.screenshot else None
    if args.screenshot is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            "gpumon tui needs a terminal",
            hint="gpumon status prints the same as text; --screenshot FILE writes an SVG",
        )
    if args.ascii:
        language.use("en")  # the only one that has plain characters
    from monitor.tui.start import build

    app = build(
        _hosts(args),
        settings.load(args),
        own=_asks_for_own(args),
        theme=args.theme,
        ascii_only=args.ascii,
        readonly=args.readonly,
        terminal=sys.stdout if args.screenshot is None else None,
        fleet=_fleet(args),
    )
    if args.screenshot is not None and size is not None:
        from monitor.tui.start import save_screenshot

        return save_screenshot(app, args.screenshot, size, args.after or AFTER_SECONDS)
    _draw_on_stdout()
    try:
        app.run()
    finally:
        app.on_left()
    app.save_preferences()
    return app.return_code or 0


def _draw_on_stdout() -> None:
    """Textual draws on stderr. If that is a log (`gpumon tui 2> log`), the first picture would stay."""
    if sys.__stderr__ is None or not sys.__stderr__.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]


def _hosts(args: argparse.Namespace) -> Sequence[tuple[str, str | None]]:
    """URLs with names; a named daemon that does not answer is shown as such."""
    from monitor.tui.feed import hosts_file

    named: list[tuple[str, str | None]] = [(url, None) for url in args.connect]
    if args.hosts is not None:
        named += hosts_file(args.hosts)
    given = os.environ.get(CONNECT_VARIABLE)
    return named or ([(given, None)] if given else [])


def _fleet(args: argparse.Namespace) -> tuple[str, float] | None:
    fleet_source.check_alone(args)
    if args.prometheus and (args.connect or args.hosts):
        raise UserError("--prometheus shows its own machines", hint="leave --connect and --hosts out")
    return (args.prometheus, args.since or fleet_source.span(fleet_source.SINCE)) if args.prometheus else None


def _asks_for_own(args: argparse.Namespace) -> bool:
    """``gpumon tui --source simulated`` asks for readings of its own, not the daemon's."""
    asked = args.option_source is not None or args.option_scenario is not None
    return asked and not os.environ.get(CONNECT_VARIABLE)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to {MOST_SECONDS}")
    return seconds


def _size(text: str) -> tuple[int, int]:
    columns, _, rows = text.lower().partition("x")
    if not (columns.isdigit() and rows.isdigit() and 40 <= int(columns) <= 500 and 10 <= int(rows) <= 200):
        raise UserError(f"{text!r} is not a size", hint="columns x rows, like 120x40")
    return int(columns), int(rows)
