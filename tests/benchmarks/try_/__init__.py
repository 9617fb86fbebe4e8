"""Does `gpumon try` find what the hand-made fix of a command brings, are the losses what the class says, and
does `gpumon boost` keep what `try` promised?

    python -m tests.benchmarks.try_ [--budget SECONDS] [--only NAME …] [--anew] [--quick]

For each case: `gpumon try` as a user would start it; then the command as it is, mended by hand and under
`gpumon boost`, in turn, as processes of the same bounded length. A row is kept as soon as it is made, in
docs/benchmarks/try.json, so the whole is measured in slices (`--budget` begins no case after so many seconds)
and taken up where it was; `--anew` forgets all rows. What is measured is fixed before the first run: a row
carries a digest of its script and of the lengths, and one made with others is made anew.
docs/benchmarks/try.md comes from the rows there are and names the cases without one.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

from tests.benchmarks.diagnosis import rows
from tests.benchmarks.try_.catalog import CASES, in_order
from tests.benchmarks.try_.measure import Lengths, measure
from tests.benchmarks.try_.report import line, page
from tests.frameworks.environment import ROOT

PAGE = ROOT / "docs" / "benchmarks" / "try.md"
ROWS = PAGE.with_suffix(".json")
LENGTHS = Lengths()
QUICK = Lengths(seconds=1.0, blocks=1, rounds=1)


def main(asked: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one block of short trials; keeps nothing")
    parser.add_argument("--only", nargs="*", default=[], choices=list(CASES), metavar="NAME")
    parser.add_argument("--anew", action="store_true", help="forget all rows first")
    parser.add_argument("--budget", type=float, default=math.inf, help="begin no case after so many seconds")
    args = parser.parse_args(asked)
    began = time.monotonic()
    kept = {} if args.anew else _kept()
    for name in args.only or in_order():
        if (name in kept and not args.quick) or time.monotonic() - began > args.budget:
            continue
        row = measure(CASES[name], QUICK if args.quick else LENGTHS)
        print(line(row), flush=True)
        if not args.quick:
            kept[name] = row
            rows.write(ROWS, kept)
    if not args.quick:
        missing = [name for name in CASES if name not in kept]
        PAGE.write_text(page([kept[name] for name in CASES if name in kept], missing))
    return 0


def _kept() -> dict[str, dict[str, Any]]:
    """Rows as they were fixed; one made with another script or other lengths does not count."""
    found: dict[str, dict[str, Any]] = rows.read(ROWS) or {}
    return {
        name: row
        for name, row in found.items()
        if name in CASES and row["fixed"] == LENGTHS.fixed(CASES[name])
    }
