"""Losses of matched queries, for the last layer and the ones before it."""

import torch
import torch.nn.functional as F
from torch import nn

from ok_set_kit.box_ops import box_cxcywh_to_xyxy, generalized_iou


class SetCriterion(nn.Module):
    def __init__(self, num_classes, matcher, weight_dict, eos_coef):
        super().__init__()
        self.num_classes, self.matcher, self.weight_dict = num_classes, matcher, weight_dict
        self.register_buffer("empty_weight", torch.tensor([1.0] * num_classes + [eos_coef]))

    def losses(self, outputs, targets, num_boxes):
        indices = self.matcher(outputs, targets)
        batch_idx = torch.cat([torch.full_like(src, i) for i, (src, _) in enumerate(indices)])
        src_idx = torch.cat([src for src, _ in indices])
        labels = torch.cat([t["labels"][j] for t, (_, j) in zip(targets, indices)])
        wanted = torch.cat([t["boxes"][j] for t, (_, j) in zip(targets, indices)])
        classes = torch.full(outputs["pred_logits"].shape[:2], self.num_classes)
        classes[batch_idx, src_idx] = labels
        boxes = outputs["pred_boxes"][batch_idx, src_idx]
        giou = generalized_iou(box_cxcywh_to_xyxy(boxes), box_cxcywh_to_xyxy(wanted))
        return {
            "loss_ce": F.cross_entropy(outputs["pred_logits"].transpose(1, 2), classes, self.empty_weight),
            "loss_bbox": F.l1_loss(boxes, wanted, reduction="sum") / num_boxes,
            "loss_giou": (1 - giou).sum() / num_boxes,
        }

    def forward(self, outputs, targets):
        num_boxes = max(sum(len(t["labels"]) for t in targets), 1)
        losses = self.losses(outputs, targets, num_boxes)
        for i, auxiliary in enumerate(outputs["aux_outputs"]):
            losses |= {f"{k}_{i}": v for k, v in self.losses(auxiliary, targets, num_boxes).items()}
        return losses

    def total(self, losses):
        return sum(self.weight_dict["_".join(name.split("_")[:2])] * value for name, value in losses.items())
