"""`make bench-trainers`: for each recipe the ladder naive → document → best, measured here and now.

    python -m tests.benchmarks.trainers [recipe …] [--minutes 20] [--seconds 100] [--out docs/benchmarks]

Writes docs/benchmarks/trainers_<recipe>.{json,md,png}. Each recipe is measured with all the CPU has, and held
to AVX2, as a lesser CPU would run it; at its default model and data, and on a small model. One torch thread;
rounds interleaved, ratios round by round with their intervals; the losses of every row are checked against
the naive ones first.

Every part is kept in out/bench-trainers. With `--minutes 20` it stops in time and the next call goes on; the
default sizes come first, and a page is written as soon as they are there. `--headline` measures nothing else,
`--left` only says what is still to be measured. `--pages` measures nothing: it writes the pages from what is
on file, also from parts of earlier code, and both it and the pages say which they are.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.trainers.slices import KEPT, ROOT, UNFINISHED, Part, Slices, fingerprint

OUT = ROOT / "docs" / "benchmarks"
KINDS: dict[str, dict[str, str]] = {
    "all the CPU has": {},
    "held to AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}
WHAT = ("default", "small", "compile")
"""The parts of a recipe on one kind of CPU."""


def main(arguments: list[str] | None = None) -> int:
    from tests.benchmarks.trainers.ladders import LADDERS

    args = options(arguments or [])
    chosen = [ladder for ladder in LADDERS if not args.recipes or ladder.name in args.recipes]
    slices = Slices(args.kept, args.minutes)
    parts = {ladder.name: parts_of(ladder, args.seconds, args.kept) for ladder in chosen}
    everything = [part for some in parts.values() for part in some]
    if args.left:
        print(slices.sentence(everything), *(part.name for part in slices.left(everything)), sep="\n")
        return 0
    if args.pages:
        for ladder in chosen:
            rewrite(ladder, slices, parts[ladder.name], args.out)
        return 0
    met = {}
    for what in WHAT[:1] if args.headline else WHAT:
        for ladder in chosen:
            if not slices.measure([part for part in parts[ladder.name] if part.name.endswith(what)]):
                print(slices.sentence(everything))
                return UNFINISHED
            met[ladder.name] = write(ladder, slices, parts[ladder.name], args.out)
    return int(not all(met.values()))


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.trainers")
    parser.add_argument("recipes", nargs="*", help="all when none is named")
    parser.add_argument(
        "--seconds", type=float, default=100.0, help="the longest the rounds of a part may take"
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="stop in time; go on with the next call"
    )
    parser.add_argument(
        "--left", action="store_true", help="say what is not measured yet, and measure nothing"
    )
    parser.add_argument("--headline", action="store_true", help="the rungs at their default sizes only")
    parser.add_argument(
        "--pages", action="store_true", help="write the pages from what is on file, old or new"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    parser.add_argument("--kept", type=Path, default=KEPT, help="folder of the parts")
    return parser.parse_args(arguments)


def parts_of(ladder: Any, seconds: float, folder: Path) -> list[Part]:
    """Both kinds of CPU, all sizes."""
    from tests.benchmarks.trainers.ladders import settings

    code = fingerprint(ladder.name, settings(ladder))
    return [
        Part(
            name=part_name(ladder.name, kind, what),
            code=code,
            measure=functools.partial(measured, ladder.name, what, seconds, environment, folder),
            seconds=2 * seconds,
        )
        for kind, environment in KINDS.items()
        for what in WHAT
    ]


def part_name(recipe: str, kind: str, what: str) -> str:
    return f"{recipe}-{'avx2' if KINDS[kind] else 'all'}-{what}"


def measured(
    name: str, what: str, seconds: float, environment: dict[str, str], folder: Path
) -> dict[str, Any]:
    """The figures of one part, from a process of its own; products are measured afresh, too."""
    data = folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        afresh = {"XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.trainers.one", name, what, str(seconds), str(data)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **afresh, **environment},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def rewrite(ladder: Any, slices: Slices, parts: list[Part], out: Path) -> None:
    """The page of one recipe from whatever is on file, and what of it is old."""
    there = {part.name for part in parts if slices.found(part) or slices.older(part)}
    needed = {part_name(ladder.name, kind, WHAT[0]) for kind in KINDS}
    if not needed <= there:
        missing = ", ".join(sorted(needed - there))
        print(f"trainers_{ladder.name}.md stays as it is: {missing} not on file")
        return
    write(ladder, slices, parts, out, older=True)
    old = [part.name for part in parts if slices.older(part)]
    print(f"  of earlier code: {', '.join(old) or 'nothing'}")


def write(ladder: Any, slices: Slices, parts: list[Part], out: Path, *, older: bool = False) -> bool:
    """The page of one recipe from the parts there are. Whether it met its goals."""
    from tests.benchmarks.trainers import report

    old = {part.name: figures for part in parts if older and (figures := slices.older(part))}
    there = [part for part in parts if slices.found(part) or part.name in old]
    found = {part.name: slices.found(part) or old[part.name] for part in there}
    names = {kind: {what: part_name(ladder.name, kind, what) for what in WHAT} for kind in KINDS}
    kinds = {
        kind: {what: found[name] for what, name in some.items() if name in found}
        for kind, some in names.items()
    }
    result = report.figures(ladder, kinds)
    result["seconds"] = round(slices.seconds(there), 1)
    result["older"] = {name: figures["date"] for name, figures in old.items()}
    out.mkdir(parents=True, exist_ok=True)
    name = f"trainers_{ladder.name}"
    (out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = report.markdown(ladder, result)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    report.picture(ladder, result, out / f"{name}.png")
    print(f"wrote {name}.md; goals {'reached' if result['met'] else 'not reached'}", flush=True)
    return bool(result["met"])
