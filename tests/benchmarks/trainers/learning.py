"""`python -m tests.benchmarks.trainers.learning`: do the default tasks get learned, and how soon?

Every recipe with its default options and generated data, best rung, one torch thread. Writes
docs/benchmarks/trainers_learning.{json,md,png}: the metric by epoch beside the baseline that costs nothing.
With `--minutes 20` it stops in time and the next call goes on; the page is written when all five are there.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.trainers import OUT
from tests.benchmarks.trainers.slices import KEPT, UNFINISHED, Part, Slices, fingerprint

RUNS = {
    # recipe: (epochs, metric, its baseline)
    "tcn": (6, "rmse", "rmse_mean"),
    "tom500": (4, "dice", "dice_brightness"),
    "reid": (20, "mAP", "mAP_untrained"),
    "graph": (5, "rmse", "rmse_last_value"),
    "sequence": (10, "rmse", "rmse_week_ago"),
}
"""Settled before the first recorded run."""


def learn(recipe: str) -> dict[str, Any]:
    """The curve of one recipe."""
    epochs, metric, baseline = RUNS[recipe]
    begun = time.perf_counter()
    command = [sys.executable, "-m", f"trainers.{recipe}", "--synthetic", f"--epochs={epochs}"]
    command += ["--validation_interval=1", "--threads=1", "--no-monitor", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*command, f"--out={folder}"], check=True, stdout=subprocess.DEVNULL)
        text = (Path(folder) / recipe / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return {
        "metric": metric,
        "baseline": baseline,
        "baseline_value": lines[0][baseline],
        "curve": [round(line[metric], 5) for line in lines],
        "seconds": round(time.perf_counter() - begun, 1),
    }


def markdown(found: dict[str, Any]) -> str:
    lines = ["# Do the default tasks get learned?", ""]
    lines += ["`python -m tests.benchmarks.trainers.learning`, best rung, one torch thread.", ""]
    lines += ["| recipe | figure | costs nothing | first epoch | best | epochs | seconds |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|"]
    for recipe, run in found.items():
        best = (max if run["metric"] in ("dice", "mAP") else min)(run["curve"])
        free = f"{run['baseline'].removeprefix(run['metric'] + '_').replace('_', ' ')}"
        cells = [f"{free} {run['baseline_value']:.4g}", f"{run['curve'][0]:.4g}", f"{best:.4g}"]
        cells += [str(len(run["curve"])), f"{run['seconds']:.0f}"]
        lines.append(f"| {recipe} | {run['metric']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", "![curves](trainers_learning.png)", ""])


def picture(found: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(3 * len(found), 2.8))
    for axis, (recipe, run) in zip(axes, found.items(), strict=True):
        axis.plot(range(1, len(run["curve"]) + 1), run["curve"], marker="o", markersize=3, color="#2a9d5c")
        axis.axhline(run["baseline_value"], color="grey", linestyle="--", linewidth=0.9)
        axis.set_title(f"{recipe}: {run['metric']}", fontsize=9)
        axis.set_xlabel(f"epoch (dashed: {run['baseline']})", fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.trainers.learning")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop in time; go on with the next call"
    )
    args = parser.parse_args(arguments or [])
    parts = {
        recipe: Part(f"learning-{recipe}", fingerprint(recipe, run), functools.partial(learn, recipe), 180)
        for recipe, run in RUNS.items()
    }
    slices = Slices(KEPT, args.minutes)
    if not slices.measure(list(parts.values())):
        print(slices.sentence(list(parts.values())))
        return UNFINISHED
    write({recipe: slices.found(part) or {} for recipe, part in parts.items()})
    return 0


def write(found: dict[str, Any]) -> None:
    (OUT / "trainers_learning.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = markdown(found)
    (OUT / "trainers_learning.md").write_text(text, encoding="utf-8")
    picture(found, OUT / "trainers_learning.png")
    print(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
