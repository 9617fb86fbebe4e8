"""`--prometheus URL`: runs over many machines instead of those of one daemon."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from monitor.model import settings
from monitor.model.errors import UserError
from monitor.model.policy import DEFAULT_POLICY, Policy, load_policy

if TYPE_CHECKING:
    from monitor.fleet.fleet import Fleet

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SINCE = "6h"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prometheus",
        metavar="URL",
        help="runs over many machines, from a Prometheus or VictoriaMetrics that scrapes their daemons",
    )
    parser.add_argument(
        "--since",
        metavar="TIME",
        type=span,
        help=f"with --prometheus: how far back to look, like 90m, 6h or 2d (default {SINCE})",
    )


def opened(args: argparse.Namespace) -> Fleet:
    """The Prometheus that was named."""
    if getattr(args, "connect", None):
        raise UserError("--prometheus and --connect exclude each other", hint="leave one of them out")
    from monitor.fleet.fleet import Fleet

    return Fleet(args.prometheus, since=args.since or span(SINCE), policy=_policy(args))


def tell_notes(fleet: Fleet) -> None:
    """What Prometheus said about its own answers is not part of them."""
    for note in fleet.notes:
        print(f"gpumon: {fleet.api.url} says: {note}", file=sys.stderr)


def span(text: str) -> float:
    """A length of time as Prometheus writes it, in seconds."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if not found or not int(found[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a length of time; use 90m, 6h or 2d")
    return int(found[1]) * UNITS[found[2]]


def _policy(args: argparse.Namespace) -> Policy:
    path = settings.load(args).policy
    return load_policy(path) if path else DEFAULT_POLICY


def check_alone(args: argparse.Namespace) -> None:
    if args.since is not None and not args.prometheus:
        raise UserError("--since is about --prometheus", hint="add --prometheus URL")
