"""Which framework runs the loop, judged by the functions that called the optimizer, then by what the script
imports."""

from __future__ import annotations

import sys
from types import FrameType

_FRAMES = 64
"""Chosen: callers to inspect; frameworks nest deeply."""
_LOOPS = {
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "lightning_fabric": "lightning",
    "transformers": "transformers",
    "trl": "trl",
    "stable_baselines3": "stable_baselines3",
    "ultralytics": "ultralytics",
    "fastai": "fastai",
    "skorch": "skorch",
    "accelerate": "accelerate",
    "ignite": "ignite",
    "composer": "composer",
    "catalyst": "catalyst",
    "deepspeed": "deepspeed",
    "torchrl": "torchrl",
    "keras": "keras",
    "d3rlpy": "d3rlpy",
    "monai": "monai",
    "pytorch_tabnet": "pytorch_tabnet",
    "sbi": "sbi",
}
"""Package → framework. The outermost caller counts: one framework's Trainer may use another's optimizer."""
_LIBRARIES = ("timm", "torch_geometric")
"""They have no loop; a script that imports one uses its models or data."""


def framework_of(frame: FrameType | None) -> str | None:
    """The framework whose functions led to this frame; None: the script's own loop."""
    found = None
    for _ in range(_FRAMES):
        if frame is None:
            break
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        found = _LOOPS.get(package, found)
        frame = frame.f_back
    return found or next((name for name in _LIBRARIES if name in sys.modules), None)
