"""For a torchvision built for CUDA beside our torch, which is not: its compiled operators cannot be loaded,
but its Python part needs two of them to exist."""

import importlib.util
from pathlib import Path
from typing import Any

_ARGUMENTS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def declare(torch: Any) -> None:
    """Call before importing torchvision; does nothing if its own operators can be loaded."""
    if _is_for_cuda():
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", _ARGUMENTS)


def _is_for_cuda() -> bool:
    spec = importlib.util.find_spec("torchvision")
    places = spec.submodule_search_locations if spec is not None else None
    return any(any(Path(f"{place}.libs").glob("libcudart*")) for place in places or ())
