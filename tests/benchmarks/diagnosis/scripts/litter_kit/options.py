"""What can be set on the command line."""

import argparse
from types import SimpleNamespace

DEFAULTS = {
    "data": {"pictures": 480, "size": 96, "most": 12, "classes": 4},
    "model": {"width": 16, "anchors": (12, 20, 32), "stride": 8},
    "schedule": {"epochs": 18, "batch": 16, "lr": 1e-3},
}


def parse():
    cli = argparse.ArgumentParser()
    cli.add_argument("--set", action="append", default=[], metavar="PART.NAME=VALUE")
    cli.add_argument("--fixed", action="store_true", help="anchors matched for all pictures at once")
    args = cli.parse_args()
    parts = {name: dict(part) for name, part in DEFAULTS.items()}
    for one in args.set:
        key, value = one.split("=")
        part, name = key.split(".")
        parts[part][name] = type(DEFAULTS[part][name])(value)
    return SimpleNamespace(
        **{name: SimpleNamespace(**part) for name, part in parts.items()},
        matcher="batched" if args.fixed else "plain",
    )
