"""Performance analyser of the TCN's data path and step (S0.5), with the document's own flags.

    python -m trainers.analyze --data_dir "data_simulation_*" --batch_size 512 --num_workers 8 \\
        --use_optimized_dataset --cache_data --num_iterations 100
    python -m trainers.analyze --synthetic --compare     # naive and optimized data set, side by side

Times loading, copying, forward, backward and optimizer, prints throughput, bottleneck and advice. The
timing is `gpumon analyze` around the trainer itself, so what is measured is what trains.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

WARMUP = 12
EPOCHS = 1000
"""More than the iterations need: --max_steps ends the trainer."""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainers.analyze", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data_dir", "--data-dir", help='folder or glob, such as "data_simulation_*"')
    parser.add_argument("--synthetic", action="store_true", help="generate data instead of reading files")
    parser.add_argument("--batch_size", "--batch-size", type=int, default=512)
    parser.add_argument("--num_workers", "--num-workers", type=int, default=0)
    parser.add_argument(
        "--use_optimized_dataset", "--use-optimized-dataset", action="store_true",
        help="normalise once when the sequences are made, instead of per sample",
    )  # fmt: skip
    parser.add_argument("--cache_data", "--cache-data", action="store_true", help="keep the data in memory")
    parser.add_argument("--num_iterations", "--num-iterations", type=int, default=100)
    parser.add_argument("--compare", action="store_true", help="time the naive data set and this one")
    parser.add_argument("--json", action="store_true", help="figures as JSON on stdout")
    return parser


def trainer_command(args: argparse.Namespace, *, optimized: bool) -> list[str]:
    """The trainer with the flags that were given."""
    source = ["--synthetic"] if args.synthetic else ["--data_dir", args.data_dir]
    return [
        sys.executable, "-m", "trainers.tcn", *source,
        "--batch_size", str(args.batch_size),
        "--num_workers", str(args.num_workers),
        "--rung", "document" if optimized else "naive",
        "--cache_data", str(args.cache_data and optimized).lower(),
        "--use_torch_compile", "false",
        "--max_steps", str(args.num_iterations + WARMUP),
        "--epochs", str(EPOCHS), "--resume", "never", "--quiet",
    ]  # fmt: skip


def analyze_command(args: argparse.Namespace, *, optimized: bool, as_json: bool) -> list[str]:
    front = [sys.executable, "-m", "monitor.cli.main", "analyze", "--iterations", str(args.num_iterations)]
    return [*front, *(["--json"] if as_json else []), "--", *trainer_command(args, optimized=optimized)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = build_parser()
    args = parser.parse_args(arguments)
    if not args.synthetic and not args.data_dir:
        parser.error("no data: --data_dir says where it is, --synthetic generates some")
    if min(args.batch_size, args.num_iterations) < 1 or args.num_workers < 0:
        parser.error("--batch_size and --num_iterations must be at least 1, --num_workers at least 0")
    if args.compare:
        return compare(args)
    command = analyze_command(args, optimized=args.use_optimized_dataset, as_json=args.json)
    return subprocess.run(command, check=False).returncode


def compare(args: argparse.Namespace) -> int:
    """The naive and the optimized data set, one after the other, and what it gains."""
    naive, optimized = (_measured(args, optimized=which) for which in (False, True))
    if naive is None or optimized is None:
        return 1
    if args.json:
        print(
            json.dumps(
                {"naive": naive, "optimized": optimized, "speedup": _speedup(naive, optimized)}, indent=2
            )
        )
        return 0
    print(f"{'stage':<14}{'naive':>12}{'optimized':>12}")
    for name in ("data", "transfer", "forward", "backward", "optimizer"):
        print(f"{name:<14}{_milliseconds(naive, name):>9.2f} ms{_milliseconds(optimized, name):>9.2f} ms")
    print(
        f"{'samples/s':<14}{_rate(naive):>12,.0f}{_rate(optimized):>12,.0f}   "
        f"×{_speedup(naive, optimized):.2f}"
    )
    print(f"naive:     {naive['verdict']}\noptimized: {optimized['verdict']}")
    return 0


def _measured(args: argparse.Namespace, *, optimized: bool) -> dict[str, Any] | None:
    """The figures of one data set; None (with its words on stderr) when the trainer failed."""
    done = subprocess.run(
        analyze_command(args, optimized=optimized, as_json=True),
        check=False,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode or not done.stdout:
        return None
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _milliseconds(figures: dict[str, Any], name: str) -> float:
    return sum(1e3 * phase["mean_seconds"] for phase in figures.get("phases", ()) if phase["name"] == name)


def _rate(figures: dict[str, Any]) -> float:
    return float(figures.get("samples_per_second") or 0.0)


def _speedup(naive: dict[str, Any], optimized: dict[str, Any]) -> float:
    return _rate(optimized) / _rate(naive) if _rate(naive) else 0.0


if __name__ == "__main__":
    sys.exit(main())
