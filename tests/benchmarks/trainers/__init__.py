"""`make bench-trainers`: for each recipe the ladder naive → document → best, measured here and now.

    python -m tests.benchmarks.trainers [recipe …] [--seconds 150] [--out docs/benchmarks]

Writes docs/benchmarks/trainers_<recipe>.{json,md,png}. Each recipe runs twice, in fresh processes: with
all the CPU has, and held to AVX2, as a lesser CPU would run. One torch thread; rounds interleaved, ratios
round by round with their intervals; the losses of every row are checked against the naive ones first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[3] / "docs" / "benchmarks"
KINDS = {
    "all the CPU has": {},
    "held to AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
}


def main(arguments: list[str] | None = None) -> int:
    from tests.benchmarks.trainers.ladders import LADDERS

    parser = argparse.ArgumentParser(prog="tests.benchmarks.trainers")
    parser.add_argument("recipes", nargs="*", help="all when none is named")
    parser.add_argument("--seconds", type=float, default=150.0, help="the longest one part may take")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    args = parser.parse_args(arguments or [])
    args.out.mkdir(parents=True, exist_ok=True)
    chosen = [ladder for ladder in LADDERS if not args.recipes or ladder.name in args.recipes]
    met = [run(ladder, args.seconds, args.out) for ladder in chosen]
    return int(not all(met))


def run(ladder: Any, seconds: float, out: Path) -> bool:
    """One recipe: measure, write, say. Whether it met its goals."""
    from tests.benchmarks.trainers import report

    begun = time.perf_counter()
    load = os.getloadavg()[0]
    kinds = {kind: measured(ladder.name, seconds, environment) for kind, environment in KINDS.items()}
    result = report.figures(ladder, kinds)
    result["seconds"] = round(time.perf_counter() - begun, 1)
    result["load_before"] = round(load, 2)
    name = f"trainers_{ladder.name}"
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = report.markdown(ladder, result)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    report.picture(ladder, result, out / f"{name}.png")
    print(text, flush=True)
    return bool(result["met"])


def measured(name: str, seconds: float, environment: dict[str, str]) -> dict[str, Any]:
    """The figures of one kind of CPU; products are measured afresh, too."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.trainers.one", name, str(seconds)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": cache, **environment},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
