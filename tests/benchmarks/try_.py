"""Does `gpumon try` find what the hand-made fix of a script brings, and are the losses what the class says?

    python -m tests.benchmarks.try_ [--budget SECONDS] [--only NAME …] [--anew] [--quick]

For each script: `gpumon try` as a user would start it; then the script and its own `--fixed` version, in
turn, as processes of the same bounded length, as the truth beside it. A row is a file in `out/try`, so the
whole is measured in slices (`--budget` begins no script after so many seconds) and taken up where it was;
`--anew` forgets all rows. docs/benchmarks/try.md comes from them once every script has its row.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from monitor.experiments.arm import Arm
from tests.benchmarks.diagnosis import rows
from tests.benchmarks.diagnosis.catalog import SCRIPTS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "out" / "try"
PAGE = ROOT / "docs" / "benchmarks" / "try.md"
CASES = {
    "augmented_photos": "no workers, random augmentation",
    "object_store": "no workers, samples wait",
    "packed_tiles": "no workers, random crops",
    "traffic_lights": "no workers, samples wait",
    "lidar_frames": "one worker",
    "remote_scans": "two workers, slow line",
    "click_through": "8 workers for cheap rows",
    "forum_votes": "6 workers for cheap rows",
    "short_epochs": "workers restarted",
    "nightly_refit": "workers restarted",
    "season_fit": "workers restarted",
    "plain_adam": "optimizer unfused",
    "many_hands": "10 threads",
    "shared_cores": "6 threads",
    "drum_loops": "anomaly mode",
    "nan_hunt": "anomaly mode",
    "tidy_memory": "gc.collect",
    "claims_cleanup": "gc.collect every step",
}
"""Scripts of the diagnosis benchmark whose fix is a knob (chosen by that alone), and what is wrong."""
PAIRS, SECONDS, BLOCKS = 2, 3.0, 2
"""Fixed before the first run: processes of either version, seconds of a trial, blocks of trials."""


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "GPUMON_DIR": str(folder / "rings"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OMP_NUM_THREADS": "1",
    }


def tried(script: str, seconds: float, blocks: int) -> dict[str, Any]:
    """The answer of `gpumon try`. Random numbers may differ: the hand-made fix changes them as well."""
    with tempfile.TemporaryDirectory(prefix="gpumon-try-bench-") as name:
        folder = Path(name)
        (folder / "rings").mkdir(mode=0o700)
        words = [sys.executable, "-m", "monitor.cli.main", "try", "--json", "--allow-numerics"]
        words += ["--seconds", str(seconds), "--blocks", str(blocks), "--most", "2"]
        began = time.monotonic()
        done = subprocess.run(
            [*words, "--", sys.executable, str(SCRIPTS / f"{script}.py")],
            env=environment(folder), capture_output=True, text=True, timeout=600, cwd=ROOT,
        )  # fmt: skip
        if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
            return {"error": done.stderr.strip()[-300:]}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer | {"took": time.monotonic() - began}


def by_hand(script: str, seconds: float) -> float | None:
    """What the script's own fix brings: both versions in turn, timed by the recorder alone."""
    from monitor.experiments.runner import Runner

    costs: dict[bool, list[float]] = {False: [], True: []}
    for fixed in (False, True, True, False)[: 2 * PAIRS]:
        words = [sys.executable, str(SCRIPTS / f"{script}.py"), *(["--fixed"] if fixed else [])]
        runner = Runner(words, _launch(), "auto")
        try:
            trial = runner.trial(Arm(), limit=300.0, seconds=seconds, least=40)
        finally:
            runner.close()
        if trial.measured is None or trial.ended.code:
            return None
        costs[fixed].append(trial.measured.cost(bool(trial.measured.samples)))
    means = {fixed: statistics.fmean(map(math.log, found)) for fixed, found in costs.items()}
    return math.exp(means[False] - means[True])


def _launch() -> dict[str, str]:
    from monitor.cli.launch import launch_environment

    return launch_environment(None) | {"OMP_NUM_THREADS": "1"}


def measure(script: str, seconds: float, blocks: int) -> dict[str, Any]:
    answer = tried(script, seconds, blocks)
    if "error" in answer:
        return {"script": script, "error": answer["error"]}
    best = answer["best"]
    return {
        "script": script,
        "by_hand": by_hand(script, seconds),
        "best": best["arm"]["settings"] if best else None,
        "ratio": best["ratio"] if best else None,
        "effect": best["effect"] if best else None,
        "results": [
            {
                "settings": one["arm"]["settings"],
                "predicted": (one["arm"]["finding"] or {}).get("speedup"),
                "ratio": one["ratio"],
                "losses": one["losses"],
                "claimed": Arm(one["arm"]["settings"]).effect,
                "problem": one["problem"],
            }
            for one in answer["results"]
        ],
        "took": answer["took"],
    }


def as_claimed(results: list[dict[str, Any]]) -> tuple[int, int]:
    """How many arms kept to the class of their knobs, of those whose losses can tell. A data set that draws
    random numbers draws others in a worker: that is said of this knob, and shown, not claimed otherwise."""
    allowed = {"identical": ("equal",), "rounding": ("equal", "rounding")}
    told = [
        one["losses"]["same"] in allowed[one["claimed"]]
        for one in results
        if one["claimed"] in allowed and one["losses"]["same"] != "unknown" and one["ratio"]
        and "loader.num_workers" not in one["settings"]
    ]  # fmt: skip
    return sum(told), len(told)


def share_of_gain(row: dict[str, Any]) -> float | None:
    """Of the logarithm of the hand-made gain; None where that fix brings less than 5 %."""
    hand, ratio = row.get("by_hand"), row.get("ratio")
    if not hand or hand < 1.05:
        return None
    return max(0.0, math.log(ratio["likely"])) / math.log(hand) if ratio else 0.0


def page(table: list[dict[str, Any]]) -> str:
    shares = [share for row in table if (share := share_of_gain(row)) is not None]
    promised = [
        (one["predicted"], one["ratio"])
        for row in table
        for one in row.get("results", [])
        if one["predicted"] and one["ratio"]
    ]
    inside = sum(p["low"] <= r["high"] and r["low"] <= p["high"] for p, r in promised)
    kept, told = as_claimed([one for row in table for one in row.get("results", [])])
    lines = [
        "# `gpumon try` against fixes made by hand",
        "",
        "`python -m tests.benchmarks.try_` wrote this on a shared machine with 2 cores and no GPU.",
        "The scripts are those of the diagnosis benchmark whose fix is a knob; `by hand` is the script's own",
        "`--fixed` version against the script, ABBA, four processes. `--allow-numerics` is on, because the",
        "hand-made fixes change random numbers too where a data set draws them; the class says where.",
        "",
        f"- share of the hand-made gain (of its logarithm), mean over the {len(shares)} scripts whose fix",
        f"  brings at least 5 %: **{_percent(statistics.fmean(shares) if shares else None)}**; at least 80 % "
        f"of it in **{sum(share >= 0.8 for share in shares)} of {len(shares)}**",
        f"- realised within the predicted range, intervals included: **{inside} of {len(promised)}**",
        "- losses as the knob's class says (equal bit for bit, or to 1e-3), workers left out, whose class",
        f"  the losses decide: **{kept} of {told}**",
        "",
        "| script | what is wrong | by hand | `gpumon try` | settings | class | share | took |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(row) for row in table),
        "",
    ]
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _row(row: dict[str, Any]) -> str:
    cause = CASES[row["script"]]
    if "error" in row:
        return f"| {row['script']} | {cause} | – | failed: {row['error'][:80]} | – | – | – | – |"
    ratio, hand = row["ratio"], row["by_hand"]
    found = f"×{ratio['likely']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})" if ratio else "nothing clear"
    settings = " ".join(f"`{name}={value}`" for name, value in (row["best"] or {}).items()) or "–"
    hand_text = f"×{hand:.2f}" if hand else "–"
    cells = (row["script"], cause, hand_text, found, settings, row["effect"] or "–")
    return f"| {' | '.join(cells)} | {_percent(share_of_gain(row))} | {row['took']:.0f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one block of short trials; keeps nothing")
    parser.add_argument("--only", nargs="*", default=[], choices=list(CASES), metavar="NAME")
    parser.add_argument("--anew", action="store_true", help="forget all rows first")
    parser.add_argument(
        "--budget", type=float, default=math.inf, help="begin no script after so many seconds"
    )
    args = parser.parse_args()
    began = time.monotonic()
    if args.anew:
        rows.begin_anew(FOLDER)
    for script in args.only or CASES:
        path = FOLDER / f"{script}.json"
        if (path.exists() and not args.quick) or time.monotonic() - began > args.budget:
            continue
        row = measure(script, 1.0, 1) if args.quick else measure(script, SECONDS, BLOCKS)
        print(_row(row), flush=True)
        if not args.quick:
            rows.write(path, row)
    _write_page()


def _write_page() -> None:
    found = {script: rows.read(FOLDER / f"{script}.json") for script in CASES}
    missing = [script for script, row in found.items() if row is None]
    if missing:
        print(f"no page yet, {len(missing)} scripts have no row: {', '.join(missing)}")
    else:
        PAGE.write_text(page(list(found.values())))


if __name__ == "__main__":
    main()
