"""torchvision without its compiled operators: no build of it fits a CPU-only torch. Its Python part wants
to know of two, and detectors use one of them."""

from __future__ import annotations

import importlib
from typing import Any

import torch

_ARGUMENTS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def _overlap(box: Any, others: Any) -> Any:
    low, high = torch.maximum(box[:2], others[:, :2]), torch.minimum(box[2:], others[:, 2:])
    shared = (high - low).clamp(min=0).prod(1)
    return shared / ((box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - shared)


def suppress(boxes: Any, scores: Any, threshold: float) -> Any:
    """Of boxes that overlap, the one with the best score."""
    left, kept = scores.argsort(descending=True), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[_overlap(boxes[best], boxes[left]) <= threshold]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.long)


def declare() -> None:
    if hasattr(torch.ops.torchvision, "nms"):
        return
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", _ARGUMENTS)
        torch.library.impl(f"torchvision::{name}", "cpu", suppress)
    try:
        boxes: Any = importlib.import_module("torchvision.ops.boxes")
    except ImportError:
        return
    boxes._assert_has_ops = lambda: None
