"""`gpumon train RECIPE …`: one of the five optimized trainers, in its own process."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from monitor.errors import UserError

RECIPES = {
    "tcn": "implicit-state TCN with a physics residual loss (S0)",
    "tom500": "orbital MRI segmentation from NIfTI volumes, UNet (S1)",
    "reid": "multi-modal re-identification, P×K batches (S2)",
    "graph": "windowed kNN graphs, encoder–decoder with transformer (S3)",
    "sequence": "LSTM with attention over time series, parameter grid (S4)",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "gpumon train RECIPE [options]     (gpumon train RECIPE --help lists them)"
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="RECIPE …", help="recipe and its options")


def run(args: argparse.Namespace) -> int:
    words = list(args.words)
    if not words:
        print("\n".join(listing()))
        return 0
    command = recipe_command(words[0], words[1:])
    sys.stdout.flush()
    return os.execv(command[0], command)


def listing() -> list[str]:
    lines = [f"  {name:<10}{text}" for name, text in RECIPES.items()]
    return ["recipes:", *lines, "", "gpumon train RECIPE --help shows the options, --synthetic needs no data"]


def recipe_command(recipe: str, options: list[str]) -> list[str]:
    """The command line of a recipe; the monitor itself never imports a trainer."""
    if recipe not in RECIPES:
        raise UserError(f"no recipe {recipe!r}", hint=f"there are: {', '.join(RECIPES)}")
    if importlib.util.find_spec("torch") is None:
        raise UserError("the trainers need torch", hint="pip install 'gpumon[trainers]'")
    return [sys.executable, "-m", f"trainers.{recipe}", *options]
