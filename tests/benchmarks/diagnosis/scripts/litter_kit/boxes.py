"""Anchors, overlaps, and which anchor is to find which box."""

import torch


def grid_anchors(size, stride, sides):
    """x1, y1, x2, y2 of every anchor, position by position."""
    centres = torch.arange(stride / 2, size, stride)
    y, x = torch.meshgrid(centres, centres, indexing="ij")
    middle = torch.stack([x, y], -1).reshape(-1, 1, 2)
    half = torch.tensor(sides, dtype=torch.float32).reshape(1, -1, 1) / 2
    return torch.cat([(middle - half), (middle + half)], -1).reshape(-1, 4)


def area(boxes):
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def overlaps(one, other):
    """Intersection over union, `one` by `other`."""
    corner = torch.maximum(one[..., :, None, :2], other[..., None, :, :2])
    end = torch.minimum(one[..., :, None, 2:], other[..., None, :, 2:])
    shared = (end - corner).clamp(min=0).prod(-1)
    return shared / (area(one)[..., :, None] + area(other)[..., None, :] - shared).clamp(min=1e-6)


def encode(anchors, boxes):
    side = anchors[..., 2:] - anchors[..., :2]
    middle = (boxes[..., :2] + boxes[..., 2:] - anchors[..., :2] - anchors[..., 2:]) / 2
    return torch.cat([middle / side, torch.log((boxes[..., 2:] - boxes[..., :2]).clamp(min=1) / side)], -1)


class PlainMatcher:
    """Picture by picture and box by box."""

    def __call__(self, anchors, targets):
        labels = torch.zeros(len(targets), len(anchors), dtype=torch.long)
        offsets = torch.zeros(len(targets), len(anchors), 4)
        for n, target in enumerate(targets):
            best = torch.full((len(anchors),), 0.4)
            for box, label in zip(target["boxes"], target["labels"]):
                corner = torch.maximum(anchors[:, :2], box[:2])
                end = torch.minimum(anchors[:, 2:], box[2:])
                shared = (end - corner).clamp(min=0).prod(-1)
                overlap = shared / (area(anchors) + area(box) - shared)
                better = overlap > best
                better[overlap.argmax()] = True
                best = torch.where(better, overlap, best)
                labels[n] = torch.where(better, label + 1, labels[n])
                offsets[n] = torch.where(better[:, None], encode(anchors, box[None]), offsets[n])
        return labels, offsets


class BatchedMatcher:
    """All pictures at once; missing boxes are empty ones."""

    def __call__(self, anchors, targets):
        most = max(len(target["labels"]) for target in targets)
        boxes = torch.zeros(len(targets), most, 4)
        kinds = torch.zeros(len(targets), most, dtype=torch.long)
        for n, target in enumerate(targets):
            boxes[n, : len(target["labels"])] = target["boxes"]
            kinds[n, : len(target["labels"])] = target["labels"] + 1
        table = overlaps(anchors[None], boxes)
        forced = (
            torch.zeros_like(table).scatter_(1, table.argmax(1, keepdim=True), 1.0) * (kinds > 0)[:, None]
        )
        overlap, chosen = (table + forced).max(2)
        labels = torch.where(overlap > 0.4, kinds.gather(1, chosen), 0)
        return labels, encode(anchors[None], boxes.gather(1, chosen[..., None].expand(-1, -1, 4)))


MATCHERS = {"plain": PlainMatcher, "batched": BatchedMatcher}
