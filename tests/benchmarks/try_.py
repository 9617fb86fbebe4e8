"""Does `gpumon try` find what the hand-made fix of a script brings, are the losses what the class says, and
does `gpumon boost` keep what `try` promised?

    python -m tests.benchmarks.try_ [--budget SECONDS] [--only NAME …] [--anew] [--quick]

For each script: `gpumon try` as a user would start it; then the script and its own `--fixed` version, in
turn, as processes of the same bounded length, as the truth beside it; then the script under `gpumon boost`
and without, in turn. A row is a file in `out/try`, so the whole is measured in slices (`--budget` begins no
script after so many seconds) and taken up where it was; `--anew` forgets all rows. What is measured is fixed
before the first run: a row carries a digest of its script and of the lengths below, and one made with others
is made anew. docs/benchmarks/try.md comes from the rows there are and names the scripts without one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from monitor.experiments.arm import Arm
from monitor.experiments.measure import measure as measured
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
BOOST_STEPS = 4
"""Fixed as well: a boosted run has so many times the steps of a trial, for it also compares while it runs."""
PATIENCE_SECONDS = 600.0


def fixed(script: str) -> str:
    """What a row was made of."""
    text = (SCRIPTS / f"{script}.py").read_text()
    return hashlib.sha256(f"{text}{PAIRS} {SECONDS} {BLOCKS} {BOOST_STEPS}".encode()).hexdigest()[:12]


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "GPUMON_DIR": str(folder / "rings"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OMP_NUM_THREADS": "1",
    }


def tried(folder: Path, script: str, seconds: float, blocks: int) -> dict[str, Any]:
    """The answer of `gpumon try`. Random numbers may differ: the hand-made fix changes them as well."""
    (folder / "rings").mkdir(mode=0o700)
    options = [
        "--json",
        "--allow-numerics",
        "--seconds",
        str(seconds),
        "--blocks",
        str(blocks),
        "--most",
        "2",
    ]
    began = time.monotonic()
    done = gpumon("try", options, script, environment(folder))
    if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
        return {"error": done.stderr.strip()[-300:]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer | {"took": time.monotonic() - began}


def gpumon(
    command: str, options: list[str], script: str, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "monitor.cli.main", command, *options]
    return subprocess.run(
        [*words, "--", sys.executable, str(SCRIPTS / f"{script}.py")],
        env=env, capture_output=True, text=True, timeout=PATIENCE_SECONDS, cwd=ROOT,
    )  # fmt: skip


def boosted(folder: Path, script: str, steps: int) -> float | None:
    """How many times faster the script is under `gpumon boost`, which knows here what `try` has verified:
    four processes in turn, each ended after as many steps. None where one of them fails."""
    costs: dict[str, list[float]] = {"run": [], "boost": []}
    ways = {"run": ["--no-summary"], "boost": ["--allow-numerics"]}
    for number, way in enumerate(("run", "boost", "boost", "run")):
        rings = folder / f"rings-{number}"
        rings.mkdir(mode=0o700)
        env = environment(folder) | {"GPUMON_DIR": str(rings), "GPUMON_MAX_STEPS": str(steps)}
        done = gpumon(way, ways[way], script, env)
        found = measured(rings, "")
        if done.returncode or found is None:
            return None
        costs[way].append(found.cost(bool(found.samples)))
    return math.exp(_log_mean(costs["run"]) - _log_mean(costs["boost"]))


def _log_mean(costs: list[float]) -> float:
    return statistics.fmean(map(math.log, costs))


def by_hand(script: str, seconds: float) -> float | None:
    """What the script's own fix brings: both versions in turn, timed by the recorder alone."""
    from monitor.experiments.runner import Runner

    costs: dict[bool, list[float]] = {False: [], True: []}
    for mended in (False, True, True, False)[: 2 * PAIRS]:
        words = [sys.executable, str(SCRIPTS / f"{script}.py"), *(["--fixed"] if mended else [])]
        runner = Runner(words, _launch(), "auto")
        try:
            trial = runner.trial(Arm(), limit=300.0, seconds=seconds, least=40)
        finally:
            runner.close()
        if trial.measured is None or trial.ended.code:
            return None
        costs[mended].append(trial.measured.cost(bool(trial.measured.samples)))
    return math.exp(_log_mean(costs[False]) - _log_mean(costs[True]))


def _launch() -> dict[str, str]:
    from monitor.cli.launch import launch_environment

    return launch_environment(None) | {"OMP_NUM_THREADS": "1"}


def measure(script: str, seconds: float, blocks: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="gpumon-try-bench-") as name:
        answer = tried(Path(name), script, seconds, blocks)
        if "error" in answer:
            return {"script": script, "fixed": fixed(script), "error": answer["error"]}
        best = answer["best"]
        boost = boosted(Path(name), script, BOOST_STEPS * answer["steps"]) if best else None
    return {
        "script": script,
        "fixed": fixed(script),
        "by_hand": by_hand(script, seconds),
        "boost": boost,
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


def share_of_promise(row: dict[str, Any]) -> float | None:
    """What `boost` reached of what `try` found, of its logarithm; None where that is less than 5 %."""
    boost, ratio = row.get("boost"), row.get("ratio")
    if not ratio or ratio["likely"] < 1.05:
        return None
    return max(0.0, math.log(boost)) / math.log(ratio["likely"]) if boost else 0.0


def page(table: list[dict[str, Any]], missing: Sequence[str] = ()) -> str:
    shares = [share for row in table if (share := share_of_gain(row)) is not None]
    promised = [
        (one["predicted"], one["ratio"])
        for row in table
        for one in row.get("results", [])
        if one["predicted"] and one["ratio"]
    ]
    inside = sum(p["low"] <= r["high"] and r["low"] <= p["high"] for p, r in promised)
    boosts = [share for row in table if (share := share_of_promise(row)) is not None]
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
        f"- what `gpumon boost` reached of what `gpumon try` found (of its logarithm), mean over the "
        f"{len(boosts)} scripts",
        f"  with something to find: **{_percent(statistics.fmean(boosts) if boosts else None)}**; at least "
        f"90 % of it in **{sum(share >= 0.9 for share in boosts)} of {len(boosts)}**",
        "",
        "The first round (2026-11-18): 107 % of the hand-made gain, at least 80 % in 18 of 18; of what `try`",
        "found, `boost` reached 72 %, at least 90 % in 9 of 18. It compared its settings with none for most",
        "of a short run: plain_adam 46 %, many_hands 32 %, shared_cores 19 %, drum_loops 33 %,",
        "nan_hunt 38 %, tidy_memory 5 %, claims_cleanup 12 %. These seven were measured anew when that was",
        "mended. A soak of the daemon (about a tenth of a core) ran beside the first round.",
        "",
        "| script | what is wrong | by hand | `gpumon try` | settings | class | share | `gpumon boost` "
        "| of what `try` found | took |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_row(row) for row in table),
        "",
        *([f"Not measured yet: {', '.join(missing)}.", ""] if missing else []),
    ]
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _row(row: dict[str, Any]) -> str:
    cause = CASES[row["script"]]
    if "error" in row:
        return f"| {row['script']} | {cause} | – | failed: {row['error'][:80]} | – | – | – | – | – | – |"
    ratio, hand = row["ratio"], row["by_hand"]
    found = f"×{ratio['likely']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})" if ratio else "nothing clear"
    settings = " ".join(f"`{name}={value}`" for name, value in (row["best"] or {}).items()) or "–"
    hand_text, boost = (f"×{one:.2f}" if one else "–" for one in (hand, row["boost"]))
    cells = (
        row["script"], cause, hand_text, found, settings, row["effect"] or "–",
        _percent(share_of_gain(row)), boost, _percent(share_of_promise(row)), f"{row['took']:.0f} s",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(asked: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one block of short trials; keeps nothing")
    parser.add_argument("--only", nargs="*", default=[], choices=list(CASES), metavar="NAME")
    parser.add_argument("--anew", action="store_true", help="forget all rows first")
    parser.add_argument(
        "--budget", type=float, default=math.inf, help="begin no script after so many seconds"
    )
    args = parser.parse_args(asked)
    began = time.monotonic()
    if args.anew:
        rows.begin_anew(FOLDER)
    for script in args.only or CASES:
        path = FOLDER / f"{script}.json"
        if (_row_of(script) and not args.quick) or time.monotonic() - began > args.budget:
            continue
        row = measure(script, 1.0, 1) if args.quick else measure(script, SECONDS, BLOCKS)
        print(_row(row), flush=True)
        if not args.quick:
            rows.write(path, row)
    _write_page()


def _row_of(script: str) -> dict[str, Any] | None:
    """The row as it was fixed; one made with another script or other lengths does not count."""
    row: dict[str, Any] | None = rows.read(FOLDER / f"{script}.json")
    return row if row is not None and row.get("fixed") == fixed(script) else None


def _write_page() -> None:
    found = {script: _row_of(script) for script in CASES}
    missing = [script for script, row in found.items() if row is None]
    PAGE.write_text(page([row for row in found.values() if row is not None], missing))


if __name__ == "__main__":
    main(sys.argv[1:])
