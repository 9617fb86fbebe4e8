"""`gpumon status`: what GPUs and runs are doing now. Asks the daemon, or else takes its own readings."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from monitor.cli.status_text import render
from monitor.client import Client
from monitor.model import settings
from monitor.model.errors import EXIT_UNREACHABLE, UserError
from monitor.model.logs import log_plainly
from monitor.model.snapshot import Snapshot, encode
from monitor.pipeline.pipeline import Pipeline
from monitor.terminal import Terminal

SETTLE_SECONDS = 0.4
"""Rates need two readings; this far apart they are accurate to a few per cent."""
OWN_OPTIONS = ("source", "gpus", "scenario", "dir", "interval", "policy")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the whole snapshot, as the API returns it")
    parser.add_argument(
        "--watch", action="store_true", help="keep updating; with --json, one snapshot per line"
    )
    parser.add_argument("--connect", metavar="URL", help="the daemon to ask: http://HOST:PORT or unix:/path")
    settings.add_options(parser, OWN_OPTIONS)


def run(args: argparse.Namespace) -> int:
    for snapshot, origin in _snapshots(args):
        if args.json:
            sys.stdout.write(encode(snapshot).decode() + "\n")
        else:
            _show(snapshot, origin, again=args.watch)
        sys.stdout.flush()
        if not args.watch:
            break
    return 0


def show_once(args: argparse.Namespace) -> Snapshot:
    """Print what is going on now; returns what was shown."""
    snapshot, origin = next(_snapshots(args))
    _show(snapshot, origin, again=False)
    return snapshot


def _snapshots(args: argparse.Namespace) -> Iterator[tuple[Snapshot, str]]:
    """From the daemon if one answers; a daemon that was named must answer."""
    client = None if _asks_for_own(args) else Client(args.connect)
    if client is not None:
        with client:
            try:
                first = client.snapshot()
            except UserError as error:
                if args.connect or error.code != EXIT_UNREACHABLE:
                    raise
            else:
                yield first, f"daemon at {client.url}"
                yield from ((snapshot, f"daemon at {client.url}") for snapshot in client.stream())
                return
    yield from ((snapshot, "read now, no daemon") for snapshot in _own_readings(args))


def _asks_for_own(args: argparse.Namespace) -> bool:
    """``gpumon status --source simulated`` asks for readings of its own, not the daemon's."""
    return not args.connect and (args.option_source is not None or args.option_scenario is not None)


def _own_readings(args: argparse.Namespace) -> Iterator[Snapshot]:
    log_plainly()
    pipeline = Pipeline(settings.load(args))
    try:
        pipeline.tick()
        time.sleep(SETTLE_SECONDS)
        while True:
            yield pipeline.tick()
            time.sleep(pipeline.settings.interval)
    finally:
        pipeline.close()


def _show(snapshot: Snapshot, origin: str, *, again: bool) -> None:
    on = Terminal(sys.stdout)
    text = render(snapshot, origin, on.width, on)
    if again and on.tty:
        text = "\x1b[H" + text.replace("\n", "\x1b[K\n") + "\x1b[J"
    sys.stdout.write(text)
