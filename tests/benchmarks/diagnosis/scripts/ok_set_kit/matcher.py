"""Which query is to answer for which box."""

import torch
from scipy.optimize import linear_sum_assignment

from ok_set_kit.box_ops import box_cxcywh_to_xyxy, generalized_iou


class HungarianMatcher:
    def __init__(self, cost_class, cost_bbox, cost_giou):
        self.cost_class, self.cost_bbox, self.cost_giou = cost_class, cost_bbox, cost_giou

    @torch.no_grad()
    def __call__(self, outputs, targets):
        bs, num_queries = outputs["pred_logits"].shape[:2]
        prob = outputs["pred_logits"].flatten(0, 1).softmax(-1)
        boxes = outputs["pred_boxes"].flatten(0, 1)
        ids = torch.cat([t["labels"] for t in targets])
        wanted = torch.cat([t["boxes"] for t in targets])
        giou = generalized_iou(box_cxcywh_to_xyxy(boxes)[:, None], box_cxcywh_to_xyxy(wanted)[None])
        cost = (
            self.cost_bbox * torch.cdist(boxes, wanted, p=1)
            - self.cost_class * prob[:, ids]
            - self.cost_giou * giou
        )
        cost = cost.view(bs, num_queries, -1)
        sizes = [len(t["boxes"]) for t in targets]
        found = [linear_sum_assignment(c[i]) for i, c in enumerate(cost.split(sizes, -1))]
        return [(torch.as_tensor(i), torch.as_tensor(j)) for i, j in found]
