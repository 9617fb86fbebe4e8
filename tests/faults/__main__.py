"""`make faults N=200`: try every listed fault and attack, and write the outcome into docs/reliability.md.

    python -m tests.faults --kills 200 [--part faults|attacks]

The figures are recorded from 200 kills on, or when told to.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.faults import page
from tests.faults.attacks import ATTACKS, FAULTS
from tests.faults.outcomes import attacks, cases, faults, named_tests
from tests.faults.people import ROOT

RECORDED_KILLS = 200
PARTS = {"faults": (FAULTS, faults), "attacks": (ATTACKS, attacks)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=RECORDED_KILLS)
    parser.add_argument("--record", action="store_true", help="write the figures down however few")
    parser.add_argument("--part", choices=PARTS, help="only this one")
    chosen = parser.parse_args()
    parts = [chosen.part] if chosen.part else list(PARTS)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        tests = named_tests([PARTS[part][0] for part in parts])
        options = [f"--junitxml={report}", "-o", "junit_family=xunit1"]
        command = [sys.executable, "-m", "pytest", *tests, *options]
        env = {**os.environ, "GPUMON_FAULTS": str(chosen.kills)}
        status = subprocess.run(command, cwd=ROOT, env=env).returncode
        if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            return status
        found = cases(report)
    if chosen.record or chosen.kills >= RECORDED_KILLS:
        for part in parts:
            page.write(part, PARTS[part][1](found))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
