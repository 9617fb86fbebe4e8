"""`make fuzz`: requests made from the API's own description, sent to a real daemon with runs and history.

    python -m tests.faults.fuzz_api [--examples 1000]

Whatever is asked, the response has a status and a shape that the description knows, what the description
forbids is refused, and the daemon carries on. Needs schemathesis (pip install schemathesis).
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import wait_for
from tests.faults import page
from tests.integration.daemon.process import Daemon
from tests.integration.daemon.test_runs import train

NEVER_ENDS = "/api/v1/stream"
NOT_IN_THE_DESCRIPTION = "positive_data_acceptance"
"""The description cannot express that `from` must be before `to`."""


def is_installed() -> bool:
    return importlib.util.find_spec("schemathesis") is not None


def fuzz(folder: Path, examples: int) -> subprocess.CompletedProcess[str]:
    """Raises nothing; exit code 0: nothing was found."""
    with Daemon(folder, "--source", "simulated", "--gpus", "2") as daemon:
        trainers = [train(folder / "rings", run, 0.001, 300) for run in ("toy-1", "toy-2")]
        assert [one.wait(60) for one in trainers] == [0, 0]
        wait_for(lambda: len(daemon.json("/api/v1/runs")) == 2)
        command = ["run", f"{daemon.url}/api/v1/openapi.json", "--max-examples", str(examples), "--no-color"]
        command += ["--exclude-path", NEVER_ENDS, "--exclude-checks", NOT_IN_THE_DESCRIPTION]
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *command], cwd=folder, capture_output=True, text=True
        )
        assert daemon.get("/-/ready")[0] == 200 and "Traceback" not in daemon.log, daemon.log
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--examples", type=int, default=1000, help="questions to each path")
    parser.add_argument("--record", action="store_true", help="write the result into docs/reliability.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        done = fuzz(Path(folder), chosen.examples)
    print(done.stdout, done.stderr, sep="\n")
    if chosen.record:
        page.put_row("fuzz", "questions to the API, from its description", asked(done.stdout), held(done))
    return done.returncode


def asked(report: str) -> str:
    """The number of requests, as schemathesis counts them."""
    found = re.search(r"(\d+) generated", report)
    return f"{int(found[1]):,}" if found else "unknown"


def held(done: subprocess.CompletedProcess[str]) -> str:
    return "every answer as described" if done.returncode == 0 else "**not every answer as described**"


if __name__ == "__main__":
    raise SystemExit(main())
