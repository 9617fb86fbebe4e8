"""Five optimized trainers over one loop (`loop.py`), each with the naive twin it is measured against.

`python -m trainers.tcn --help`, or `gpumon train tcn …`. Nothing heavy is imported here.
"""

from __future__ import annotations

import importlib.util
import os
import sys

RECIPES = {
    "tcn": "implicit-state TCN with a physics residual loss (S0)",
    "tom500": "orbital MRI segmentation from NIfTI volumes, UNet (S1)",
    "reid": "multi-modal re-identification, P×K batches (S2)",
    "graph": "windowed kNN graphs, encoder–decoder with transformer (S3)",
    "sequence": "LSTM with attention over time series, parameter grid (S4)",
}
NEEDED = {"torch": "torch", "numpy": "numpy", "yaml": "pyyaml", "PIL": "pillow"}


def missing_packages() -> list[str]:
    """What `gpumon-train[trainers]` would bring and is not installed."""
    return [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]


if sys.argv[:1] == ["-m"]:  # `python -m trainers.x` is being started, and torch is not yet imported
    # Waiting threads that spin steal the cores of whoever shares them: measured ×1.5–3 on a busy CPU.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if sys.argv[1:] and missing_packages():
        missing = ", ".join(missing_packages())
        print(f"trainers: {missing} not installed; pip install 'gpumon-train[trainers]'", file=sys.stderr)
        raise SystemExit(2)
