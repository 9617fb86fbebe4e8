"""`python -m tests.benchmarks.device`: scripts on the stand-in device, bare, fixed and under gpumon."""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks.device import frozen, main, validate
from tests.benchmarks.device.catalog import CASES


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.device", description=__doc__)
    names = [case.script for case in CASES]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=names, default=[], help="these scripts")
    parser.add_argument("--quick", action="store_true", help="a dozen scripts of all kinds; no page")
    parser.add_argument("--jobs", type=int, default=1, help="scripts at a time (more than 1 disturbs them)")
    parser.add_argument("--note", default="", help="what was special about this run, for the page")
    parser.add_argument("--validate", action="store_true", help="without gpumon: are the scripts as stated?")
    parser.add_argument("--freeze", action="store_true", help="note new scripts before gpumon sees them")
    return parser.parse_args()


asked = parse()
if asked.freeze:
    print("frozen:", ", ".join(frozen.freeze(CASES)) or "nothing new")
    sys.exit(0)
if asked.validate:
    sys.exit(validate([case for case in CASES if not asked.only or case.script in asked.only]))
sys.exit(main(asked.only, quick=asked.quick, jobs=asked.jobs, note=asked.note))
