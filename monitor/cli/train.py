"""`gpumon train RECIPE …`: run one of the five optimized trainers, in its own process."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from monitor.model.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon train RECIPE [options]     (gpumon train RECIPE --help lists them)"
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="RECIPE …", help="recipe and its options")


def run(args: argparse.Namespace) -> int:
    command = trainers_command(*args.words)
    sys.stdout.flush()
    return os.execv(command[0], command)


def trainers_command(*words: str) -> list[str]:
    """The command line of a trainer; the monitor itself never imports one."""
    if words and importlib.util.find_spec("torch") is None:
        raise UserError("the trainers need torch", hint="pip install 'gpumon-train[trainers]'")
    return [sys.executable, "-m", "trainers", *words]
