"""RotatE: a relation turns the head until it lies on the tail."""

import math

import torch
from torch import nn


class RotatE(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.gamma = options.gamma
        self.span = (options.gamma + 2.0) / options.dim
        self.entity = nn.Embedding(options.entities, 2 * options.dim)
        self.relation = nn.Embedding(options.relations, options.dim)
        nn.init.uniform_(self.entity.weight, -self.span, self.span)
        nn.init.uniform_(self.relation.weight, -self.span, self.span)

    def turned(self, entity, relation, back):
        """`entity` rotated by the relation, or back by it."""
        real, imaginary = entity.chunk(2, -1)
        phase = relation / (self.span / math.pi)
        cosine, sine = phase.cos(), phase.sin() * (-1 if back else 1)
        return torch.cat([real * cosine - imaginary * sine, real * sine + imaginary * cosine], -1)

    def distance(self, one, other):
        real, imaginary = (one - other).chunk(2, -1)
        return (real.square() + imaginary.square() + 1e-9).sqrt().sum(-1)

    def forward(self, positive, negatives, mode):
        head, tail = self.entity(positive[:, 0]), self.entity(positive[:, 2])
        relation = self.relation(positive[:, 1])
        if mode == "tail":
            anchor, true = self.turned(head, relation, back=False), tail
        else:
            anchor, true = self.turned(tail, relation, back=True), head
        false = self.entity(negatives)
        return (
            self.gamma - self.distance(anchor, true),
            self.gamma - self.distance(anchor[:, None], false),
        )
