"""``python -m tests.integration.grafana.contact_sheet``: stages two machines and draws docs/images/."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from grafana.preview import write
from tests.integration.grafana.stage import FIXED, MANY, NAIVE, stage

OUT = Path(__file__).resolve().parents[3] / "docs" / "images"
NOTE = "data: two daemons with SIMULATED GPUs, short runs, scraped every second"
CHOSEN = {
    "cluster": {},
    "node": {"instance": "gpu-node-2"},
    "run": {"run": NAIVE},
    "run-ranks": {"run": MANY},
    "compare": {"run_a": NAIVE, "run_b": FIXED},
}


def main(seconds: float = 75.0) -> int:
    program = shutil.which("prometheus")
    if program is None:
        print("prometheus is not installed (Debian: apt-get install prometheus)", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, stage(program, Path(folder), seconds) as (asked, span):
        for path in write(OUT, asked, span, CHOSEN, NOTE):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:2])))
