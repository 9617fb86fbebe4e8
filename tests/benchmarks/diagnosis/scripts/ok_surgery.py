"""Four tasks from one trunk; gradients of tasks that are at odds are projected off each other (PCGrad)."""

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Plan:
    tasks: int = 4
    steps: int = 150
    batch: int = 256
    features: int = 128
    width: int = 384
    lr: float = 5e-4


class MultiHead(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(plan.features, plan.width), nn.ReLU(), nn.Linear(plan.width, plan.width), nn.ReLU(),
            nn.Linear(plan.width, plan.width), nn.ReLU(),
        )  # fmt: skip
        self.heads = nn.ModuleList([nn.Linear(plan.width, 1) for _ in range(plan.tasks)])

    def forward(self, x):
        shared = self.trunk(x)
        return [head(shared).squeeze(1) for head in self.heads]


class PCGrad:
    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.params = [p for group in optimizer.param_groups for p in group["params"]]

    def gradients(self, losses):
        flat = []
        for number, loss in enumerate(losses):
            found = torch.autograd.grad(
                loss, self.params, retain_graph=number + 1 < len(losses), allow_unused=True
            )
            flat.append(
                torch.cat(
                    [(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(self.params, found)]
                )
            )
        return flat

    def project(self, gradients):
        total = torch.zeros_like(gradients[0])
        for i, own in enumerate(gradients):
            own = own.clone()
            others = [g for j, g in enumerate(gradients) if j != i]
            random.shuffle(others)
            for other in others:
                dot = own @ other
                own -= torch.where(dot < 0, dot / (other @ other), torch.zeros(())) * other
            total += own
        return total

    def backward(self, losses):
        merged, start = self.project(self.gradients(losses)), 0
        for p in self.params:
            p.grad = merged[start : start + p.numel()].view_as(p)
            start += p.numel()

    def step(self):
        self.optimizer.step()


def main():
    plan = Plan()
    torch.manual_seed(90)
    random.seed(90)
    x = torch.randn(8000, plan.features)
    targets = torch.stack([(x[:, t * 9] * x[:, t * 7 + 1]).tanh() for t in range(plan.tasks)])
    model = MultiHead(plan)
    optimizer = PCGrad(torch.optim.Adam(model.parameters(), lr=plan.lr, fused=True))
    for step in range(plan.steps):
        rows = torch.randint(len(x), (plan.batch,))
        losses = [F.mse_loss(out, target[rows]) for out, target in zip(model(x[rows]), targets)]
        optimizer.backward(losses)
        optimizer.step()
        if step % 30 == 0:
            print(step, [round(value, 3) for value in torch.stack(losses).tolist()])


if __name__ == "__main__":
    main()
