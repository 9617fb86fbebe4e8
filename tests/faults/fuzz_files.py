"""`make fuzz`: settings and web-config files with any content, many more than `make test` tries.

python -m tests.faults.fuzz_files [--examples 5000] [--record]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.faults import page
from tests.faults.people import ROOT

TESTS = "tests/unit/test_files_fuzz.py"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--examples", type=int, default=5000, help="of each of the tests")
    parser.add_argument("--record", action="store_true", help="write the result into docs/reliability.md")
    chosen = parser.parse_args()
    env = {**os.environ, "GPUMON_EXAMPLES": str(chosen.examples)}
    command = [sys.executable, "-m", "pytest", TESTS, "--timeout=3600"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    print(done.stdout)
    if chosen.record:
        tried = f"{(ROOT / TESTS).read_text(encoding='utf-8').count('@given(') * chosen.examples:,}"
        held = (
            "understood, or told in a sentence what is wrong" if done.returncode == 0 else "**not all held**"
        )
        page.put_row("fuzz", "settings and web-config files", f"up to {tried}", held)
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
