"""A parameter grid: one process per combination, as many side by side as there are cores.

On a CPU two runs with one thread each finish sooner than one after the other with two threads.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from trainers import options
from trainers.errors import EXIT_FAILED, TrainerError, report
from trainers.sequence.options import SequenceConfig


def combinations(hidden: str, lengths: str, config: SequenceConfig) -> list[dict[str, int]]:
    """All pairs of the two lists; an empty list is the option's own value."""
    try:
        sizes = [int(word) for word in hidden.split(",") if word] or [config.hidden_size]
        days = [int(word) for word in lengths.split(",") if word] or [config.sequence_length]
    except ValueError as error:
        raise TrainerError(f"a grid is a list of whole numbers: {error}") from error
    return [{"hidden_size": h, "sequence_length": n} for h, n in itertools.product(sizes, days)]


def run_one(arguments: Sequence[str], point: dict[str, int], out: str, threads: int) -> dict[str, Any]:
    """One combination in its own process; its summary line, or what it said when it failed."""
    folder = Path(out) / "grid" / "-".join(f"{name}{value}" for name, value in point.items())
    extra = [f"--{name}={value}" for name, value in point.items()]
    command = [sys.executable, "-m", "trainers.sequence", *arguments, *extra, f"--out={folder}", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {
            **point,
            "failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no reason given",
        }
    return {**point, **json.loads(done.stdout.strip().splitlines()[-1])}


def main(arguments: Sequence[str]) -> int:
    """Run the grid, print a line per combination and the best; write grid.json."""
    try:
        config = options.parse(SequenceConfig, arguments, "trainers.sequence", "")
        points = combinations(config.grid_hidden, config.grid_lengths, config)
    except TrainerError as error:
        return report("trainers.sequence", error)
    cores = os.cpu_count() or 1
    side_by_side = config.grid_processes or (
        1 if config.rung == "naive" or config.device.startswith("cuda") else cores
    )
    threads = max(1, cores // side_by_side)
    plain = [word for word in arguments if not word.startswith(("--grid_", "--grid-", "--out"))]
    plain = _without_values(arguments, plain)
    with ThreadPoolExecutor(side_by_side) as pool:
        results = list(pool.map(lambda point: run_one(plain, point, config.out, threads), points))
    good = [result for result in results if "rmse" in result]
    for result in results:
        print(json.dumps(result))
    if not good:
        return EXIT_FAILED
    best = min(good, key=lambda result: result["rmse"])
    path = Path(config.out) / "grid.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"best": best, "all": results}, indent=1), encoding="utf-8")
    print(f"best: hidden {best['hidden_size']}, length {best['sequence_length']}", file=sys.stderr)
    return 0


def _without_values(arguments: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Drop the value word after a removed `--grid_x VALUE` or `--out VALUE`."""
    result, skip = [], False
    for word in arguments:
        if skip and not word.startswith("--"):
            skip = False
            continue
        skip = word not in kept and "=" not in word
        if word in kept:
            result.append(word)
    return result
