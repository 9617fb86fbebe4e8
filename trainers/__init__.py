"""Five optimized trainers over one engine, each with the naive twin it is measured against.

`python -m trainers.tcn --help`, or `gpumon train tcn …`. Nothing heavy is imported here.
"""

from __future__ import annotations

import importlib.util
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
    """What `gpumon[trainers]` would bring and is not installed."""
    return [package for module, package in NEEDED.items() if importlib.util.find_spec(module) is None]


if sys.argv[:1] == ["-m"] and missing_packages():
    # `python -m trainers.x` is being started: one sentence instead of an import traceback.
    print(
        f"trainers: {', '.join(missing_packages())} not installed; pip install 'gpumon[trainers]'",
        file=sys.stderr,
    )
    raise SystemExit(2)
