"""One row: the answer of `gpumon try`, then the command as it is, mended by hand and boosted, in turn."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monitor.experiments.arm import Arm
from monitor.experiments.measure import Measured
from monitor.experiments.measure import measure as measured
from monitor.experiments.spread import Ratio, noise, ratio_of
from tests.benchmarks.try_.catalog import Case, digest
from tests.frameworks.environment import ROOT

PATIENCE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Lengths:
    """Fixed before the first run."""

    seconds: float = 3.0
    """Of a trial."""
    blocks: int = 3
    """Of trials, at most; 3 is what `gpumon try` does unasked."""
    times: int = 2
    """A run beside it has so many times the steps of a trial, or ends by itself."""
    rounds: int = 2
    """Of such runs, at most."""
    clear: float = 0.1
    """A second round is made where the first leaves more than this share of the gain open."""

    def fixed(self, case: Case) -> str:
        return digest(case, str(self))


class Bench:
    """A folder in which one case is tried and run. `gpumon boost` knows here what `try` has verified."""

    def __init__(self, folder: Path, case: Case) -> None:
        self._folder = folder
        self._case = case
        self._count = 0
        self._work = folder / "work"
        self._work.mkdir()

    def _environment(self, rings: str) -> dict[str, str]:
        (self._folder / rings).mkdir(mode=0o700)
        return os.environ | {
            "GPUMON_DIR": str(self._folder / rings),
            "XDG_STATE_HOME": str(self._folder / "state"),
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
        }

    def _gpumon(
        self, words: Sequence[str], env: dict[str, str], fix: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """One that does not end in time is asked to, so that it ends what it has started."""
        command = [sys.executable, "-m", "monitor.cli.main", *words, "--", *self._case.command(), *fix]
        with subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self._work
        ) as child:
            try:
                out, err = child.communicate(timeout=PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                child.terminate()
                out, err = child.communicate()
        return subprocess.CompletedProcess(command, child.returncode, out, err)

    def tried(self, lengths: Lengths) -> dict[str, Any]:
        """The answer of `gpumon try`. Random numbers may differ: the hand-made fix changes them as well."""
        options = ["--seconds", str(lengths.seconds), "--blocks", str(lengths.blocks), "--most", "2"]
        began = time.monotonic()
        done = self._gpumon(["try", "--json", "--allow-numerics", *options], self._environment("rings"))
        if done.returncode not in (0, 1) or not done.stdout.startswith("{"):
            return {"error": done.stderr.strip()[-300:]}
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer | {"took": time.monotonic() - began}

    def ran(self, way: str, steps: int) -> Measured | None:
        """`as it is`, `by hand` or `boost`, ended after so many steps. None where it fails."""
        self._count += 1
        rings = f"rings-{self._count}"
        env = self._environment(rings) | {"GPUMON_MAX_STEPS": str(steps)}
        words = ["boost", "--allow-numerics"] if way == "boost" else ["run", "--no-summary"]
        done = self._gpumon(words, env, self._case.fix if way == "by hand" else ())
        return None if done.returncode else measured(self._folder / rings, "")

    def beside(self, steps: int, promise: Ratio | None, lengths: Lengths) -> dict[str, list[float]]:
        """Way → seconds a sample (a step where samples are not known) of each run; there and back in turn, so
        that what drifts is the same for all."""
        ways = ["as it is", "by hand", *(["boost"] if promise else [])]
        runs: dict[str, list[Measured]] = {way: [] for way in ways}
        for _ in range(lengths.rounds):
            for way in (*ways, *reversed(ways)):
                one = self.ran(way, steps)
                if one is None:
                    ways = [other for other in ways if other != way]
                    runs.pop(way, None)
                elif way in runs:
                    runs[way].append(one)
            if "as it is" not in runs or is_clear(costs(runs), promise, lengths.clear):
                break
        return costs(runs)


def costs(runs: dict[str, list[Measured]]) -> dict[str, list[float]]:
    by_sample = all(one.samples for found in runs.values() for one in found)
    return {way: [one.cost(by_sample) for one in found] for way, found in runs.items()}


def faster(found: dict[str, list[float]], way: str) -> Ratio | None:
    """Than the command as it is; None where one of the two has no runs."""
    deviation, freedom = noise(list(found.values()))
    return ratio_of(found.get("as it is", []), found.get(way, []), deviation, freedom)


def is_clear(found: dict[str, list[float]], promise: Ratio | None, open_share: float) -> bool:
    """Whether the gain of the boosted run is known to a share of the promise (both as logarithms)."""
    boost = faster(found, "boost")
    if promise is None or boost is None:
        return True
    return math.log(boost.high / boost.low) / 2.0 <= open_share * abs(math.log(promise.likely))


def measure(case: Case, lengths: Lengths) -> dict[str, Any]:
    began = time.monotonic()
    row: dict[str, Any] = {"name": case.name, "fixed": lengths.fixed(case)}
    with tempfile.TemporaryDirectory(prefix="gpumon-try-bench-") as name:
        bench = Bench(Path(name), case)
        answer = bench.tried(lengths)
        if "error" in answer:
            return row | {"error": answer["error"]}
        best = answer["best"]
        promise = Ratio(**best["ratio"]) if best else None
        beside = bench.beside(lengths.times * answer["steps"], promise, lengths)
    return row | {
        "costs": beside,
        "best": best["arm"]["settings"] | best["arm"]["options"] if best else None,
        "ratio": best["ratio"] if best else None,
        "effect": best["effect"] if best else None,
        "results": [_result(one) for one in answer["results"]],
        "took": answer["took"],
        "row_took": time.monotonic() - began,
    }


def _result(one: dict[str, Any]) -> dict[str, Any]:
    """What is judged of an arm."""
    arm = Arm(one["arm"]["settings"], options=one["arm"]["options"])
    return {
        "settings": arm.settings | arm.options,
        "predicted": (one["arm"]["finding"] or {}).get("speedup"),
        "ratio": one["ratio"],
        "losses": one["losses"],
        "claimed": arm.effect,
        "problem": one["problem"],
    }
