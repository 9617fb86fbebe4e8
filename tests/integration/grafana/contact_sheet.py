"""``python -m tests.integration.grafana.contact_sheet``: stages two machines and draws docs/images/."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from docs.tools.grafana_preview.sheet import write
from tests.integration.grafana.stage import FIXED, MANY, NAIVE, stage

OUT = Path(__file__).resolve().parents[3] / "docs" / "images"
NOTE = "data: five daemons with SIMULATED GPUs, short runs, scraped every second"
CHOSEN = {
    "cluster": {},
    "node": {"instance": "gpu-node-2"},
    "run": {"run": NAIVE},
    "run-ranks": {"run": MANY},
    "compare": {"run_a": NAIVE, "run_b": FIXED},
}
FLEET: dict[str, dict[str, tuple[str, ...]]] = {
    "gpu-node-3": {"llama-pretrain": ("--ranks", "8", "--data", "0.03", "--slurm-job", "5120")},
    "gpu-node-4": {
        "bert-finetune": ("--ranks", "4", "--gpus", "4", "--data", "0.22", "--slurm-job", "5133"),
        "unet-tom500": ("--ranks", "2", "--first-gpu", "4", "--data", "0.58", "--slurm-job", "5140"),
    },
    "gpu-node-5": {"reid-pk": ("--ranks", "6", "--data", "0.45", "--straggler", "1", "--slurm-job", "5151")},
}


def main(seconds: float = 75.0) -> int:
    program = shutil.which("prometheus")
    if program is None:
        print("prometheus is not installed (Debian: apt-get install prometheus)", file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory() as folder,
        stage(program, Path(folder), seconds, FLEET) as (asked, span),
    ):
        for path in write(OUT, asked, span, CHOSEN, NOTE):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:2])))
