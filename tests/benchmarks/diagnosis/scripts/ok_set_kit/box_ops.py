"""Boxes as centres and as corners, and how much two of them share."""

import torch


def box_cxcywh_to_xyxy(x):
    centre, half = x[..., :2], x[..., 2:] / 2
    return torch.cat([centre - half, centre + half], -1)


def area(b):
    return (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])


def generalized_iou(a, b):
    """Of boxes that broadcast against each other."""
    inter = (
        (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0).prod(-1)
    )
    union = area(a) + area(b) - inter
    hull = (torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])).prod(-1)
    return inter / union - (hull - union) / hull
