"""`gpumon daemon`: sample, diagnose and serve until a signal."""

from __future__ import annotations

import argparse

from monitor.model import settings


def configure(parser: argparse.ArgumentParser) -> None:
    settings.add_options(parser)
    parser.add_argument("--verbose", action="store_true", help="log more to stderr")


def run(args: argparse.Namespace) -> int:
    chosen = settings.load(args)
    from monitor.daemon.daemon import run_daemon
    from monitor.daemon.logs import set_up_logging

    set_up_logging(args.verbose)
    return run_daemon(chosen)
