"""torchvision for a CUDA build of torch, beside ours, which is not one: its compiled operators cannot be
loaded, and its Python part wants to know of two of them."""

import importlib.util
from pathlib import Path
from typing import Any

_ARGUMENTS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def declare(torch: Any) -> None:
    """Before torchvision is imported; nothing where its own operators can be loaded."""
    if _is_for_cuda():
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", _ARGUMENTS)


def _is_for_cuda() -> bool:
    spec = importlib.util.find_spec("torchvision")
    places = spec.submodule_search_locations if spec is not None else None
    return any(any(Path(f"{place}.libs").glob("libcudart*")) for place in places or ())
