"""`gpumon daemon`: sample, diagnose and serve until a signal."""

from __future__ import annotations

import argparse

from monitor.cli import fleet_source
from monitor.model import settings


def configure(parser: argparse.ArgumentParser) -> None:
    settings.add_options(parser)
    fleet_source.configure(parser)
    parser.add_argument("--verbose", action="store_true", help="log more to stderr")


def run(args: argparse.Namespace) -> int:
    chosen = settings.load(args)
    from monitor.daemon.daemon import run_daemon
    from monitor.daemon.logs import set_up_logging

    set_up_logging(args.verbose)
    fleet_source.check_alone(args)
    if not args.prometheus:
        return run_daemon(chosen)
    from monitor.daemon.fleet_ticks import FleetTicks

    fleet = FleetTicks(fleet_source.opened(args), chosen)
    return run_daemon(fleet.settings, fleet)
