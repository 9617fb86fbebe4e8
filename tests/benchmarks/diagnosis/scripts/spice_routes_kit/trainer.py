"""Losses and steps, and the rank of held-out tails at the end."""

import torch
import torch.nn.functional as F

from spice_routes_kit.graph import alternating, make_triples
from spice_routes_kit.model import RotatE


class Trainer:
    def __init__(self, options):
        self.options = options
        torch.manual_seed(options.seed)
        triples = make_triples(options)
        self.held_out, self.training = torch.from_numpy(triples[:500]), triples[500:]
        self.model = RotatE(options)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [options.warm_up], 0.3)

    def loss(self, batch, mode):
        positive, negatives, weight = batch
        true, false = self.model(positive, negatives, mode)
        hardness = F.softmax(false.detach() * self.options.temperature, 1)
        for_false = (hardness * F.logsigmoid(-false)).sum(1)
        return -(weight * (F.logsigmoid(true) + for_false)).sum() / (2 * weight.sum())

    def train(self):
        losses = []
        batches = alternating(self.training, self.options)
        for step in range(1, self.options.steps + 1):
            mode, batch = next(batches)
            self.model.train()
            loss = self.loss(batch, mode)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.detach())
            if step % 50 == 0:
                print(f"step {step}: loss {torch.stack(losses).mean().item():.4f}")
                losses.clear()
        print(f"mean reciprocal rank {self.mean_reciprocal_rank():.3f}")

    @torch.no_grad()
    def mean_reciprocal_rank(self):
        self.model.eval()
        found = []
        everything = torch.arange(self.options.entities)
        for rows in self.held_out.split(50):
            _, scores = self.model(rows, everything.expand(len(rows), -1), "tail")
            truth = scores.gather(1, rows[:, 2:])
            found.append(1.0 / (1 + (scores > truth).sum(1)))
        return torch.cat(found).mean().item()
