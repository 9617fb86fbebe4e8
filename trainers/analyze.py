"""Performance analyser of a recipe's data path and step (S0.5), with the document's own flags.

    python -m trainers.analyze --data_dir "data_simulation_*" --batch_size 512 --num_workers 8 \\
        --use_optimized_dataset --cache_data --num_iterations 100
    python -m trainers.analyze --synthetic --compare          # the naive and the optimized data set
    python -m trainers.analyze reid --synthetic --compare --width 8

The recipe is tcn unless named first; options not listed below go to the trainer as they are. Times
loading, copying, forward, backward and optimizer, prints throughput, bottleneck and advice. The timing
is `gpumon analyze` around the trainer itself, so what is measured is what trains.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from sdk import units
from trainers import RECIPES

EPOCHS = 100_000
"""More than the iterations need: `gpumon analyze` ends the trainer after them."""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainers.analyze", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", nargs="?", default="tcn", choices=RECIPES)
    parser.add_argument("--data_dir", "--data-dir", help='folder or glob, such as "data_simulation_*"')
    parser.add_argument("--synthetic", action="store_true", help="generate data instead of reading files")
    parser.add_argument("--num_workers", "--num-workers", type=int, default=0)
    parser.add_argument(
        "--use_optimized_dataset", "--use-optimized-dataset", action="store_true",
        help="the document's data path (tcn: normalised once), instead of the naive one",
    )  # fmt: skip
    parser.add_argument("--cache_data", "--cache-data", action="store_true", help="keep the data in memory")
    parser.add_argument("--num_iterations", "--num-iterations", type=int, default=100)
    parser.add_argument("--compare", action="store_true", help="time the naive data set and this one")
    parser.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    return parser


def trainer_command(args: argparse.Namespace, rest: Sequence[str], *, optimized: bool) -> list[str]:
    """The trainer with the flags that were given."""
    source = ["--synthetic"] if args.synthetic else ["--data_dir", args.data_dir]
    return [
        sys.executable, "-m", f"trainers.{args.recipe}", *source,
        "--num_workers", str(args.num_workers),
        "--rung", "document" if optimized else "naive",
        "--cache_data", str(args.cache_data and optimized).lower(),
        "--use_torch_compile", "false",
        "--epochs", str(EPOCHS), "--validation_interval", str(EPOCHS),
        "--resume", "never", "--quiet", *rest,
    ]  # fmt: skip


def analyze_command(
    args: argparse.Namespace, rest: Sequence[str], *, optimized: bool, as_json: bool
) -> list[str]:
    front = [sys.executable, "-m", "monitor.cli.main", "analyze", "--iterations", str(args.num_iterations)]
    command = trainer_command(args, rest, optimized=optimized)
    return [*front, *(["--json"] if as_json else []), "--", *command]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = build_parser()
    args, rest = parser.parse_known_args(arguments)
    if not args.synthetic and not args.data_dir:
        parser.error("no data: --data_dir says where it is, --synthetic generates some")
    if args.num_iterations < 1 or args.num_workers < 0:
        parser.error("--num_iterations must be at least 1, --num_workers at least 0")
    if args.compare:
        return compare(args, rest)
    command = analyze_command(args, rest, optimized=args.use_optimized_dataset, as_json=args.json)
    return subprocess.run(command, check=False).returncode


def compare(args: argparse.Namespace, rest: Sequence[str]) -> int:
    """The naive and the optimized data set, one after the other, and what it gains."""
    naive, optimized = (_measured(args, rest, optimized=which) for which in (False, True))
    if naive is None or optimized is None:
        return 1
    speedup = _rate(optimized) / _rate(naive) if _rate(naive) else 0.0
    if args.json:
        print(json.dumps({"naive": naive, "optimized": optimized, "speedup": speedup}, indent=2))
        return 0
    print(f"{'stage':<14}{'naive':>12}{'optimized':>12}")
    for name in ("data", "transfer", "forward", "backward", "optimizer"):
        before, after = (units.seconds(_seconds(figures, name)) for figures in (naive, optimized))
        print(f"{name:<14}{before:>12}{after:>12}")
    rates = f"{units.whole(_rate(naive)):>12}{units.whole(_rate(optimized)):>12}"
    print(f"{'samples/s':<14}{rates}   {units.gain(speedup)}")
    print(f"naive:     {naive['verdict']}\noptimized: {optimized['verdict']}")
    return 0


def _measured(args: argparse.Namespace, rest: Sequence[str], *, optimized: bool) -> dict[str, Any] | None:
    """The figures of one data set; None (with its words on stderr) when the trainer failed."""
    command = analyze_command(args, rest, optimized=optimized, as_json=True)
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode or not done.stdout:
        return None
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _seconds(figures: dict[str, Any], name: str) -> float:
    phases = [phase for phase in figures.get("phases", ()) if phase["name"] == name]
    return sum(float(phase["mean_seconds"]) for phase in phases)


def _rate(figures: dict[str, Any]) -> float:
    return float(figures.get("samples_per_second") or 0.0)


if __name__ == "__main__":
    sys.exit(main())
