"""Swapped assignments (SwAV): two views, prototypes, codes by a few Sinkhorn rounds in every step."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

DEFAULTS = {
    "steps": 160,
    "batch": 128,
    "prototypes": 300,
    "dim": 64,
    "temperature": 0.1,
    "epsilon": 0.05,
    "rounds": 3,
}


class Encoder(nn.Module):
    def __init__(self, width, dim):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.project = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, dim))

    def forward(self, x):
        return F.normalize(self.project(self.features(x)), dim=1)


@torch.no_grad()
def sinkhorn(scores, epsilon, rounds):
    q = (scores / epsilon).exp().t()
    q /= q.sum()
    k, b = q.shape
    for _ in range(rounds):
        q /= q.sum(dim=1, keepdim=True) * k
        q /= q.sum(dim=0, keepdim=True) * b
    return (q * b).t()


def two_views(images):
    def one():
        shift = torch.randint(-3, 4, (2,)).tolist()
        moved = torch.roll(images, shift, dims=(2, 3))
        return moved * (0.7 + 0.6 * torch.rand(len(images), 1, 1, 1)) + 0.1 * torch.randn_like(images)

    return one(), one()


def make_step(encoder, prototypes, optimizer, hp):
    """A closure, as in functional code: what a step needs is bound once."""

    def step(images):
        with torch.no_grad():
            prototypes.weight.copy_(F.normalize(prototypes.weight, dim=1))
        a, b = two_views(images)
        scores = prototypes(encoder(torch.cat([a, b])))
        first, second = scores.chunk(2)
        code_a, code_b = (sinkhorn(s.detach(), hp["epsilon"], hp["rounds"]) for s in (first, second))
        loss = (
            -0.5
            * (
                (code_a * F.log_softmax(second / hp["temperature"], 1)).sum(1)
                + (code_b * F.log_softmax(first / hp["temperature"], 1)).sum(1)
            ).mean()
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def main(hp):
    torch.manual_seed(61)
    images = F.interpolate(torch.randn(1500, 3, 6, 6), size=(24, 24))
    encoder, prototypes = Encoder(12, hp["dim"]), nn.Linear(hp["dim"], hp["prototypes"], bias=False)
    params = [*encoder.parameters(), *prototypes.parameters()]
    step = make_step(encoder, prototypes, torch.optim.SGD(params, lr=0.1, momentum=0.9, foreach=True), hp)
    losses = []
    for number in range(hp["steps"]):
        losses.append(step(images[torch.randint(len(images), (hp["batch"],))]))
        if number % 40 == 39:
            print(number, round(torch.stack(losses[-40:]).mean().item(), 4))


if __name__ == "__main__":
    main(
        {
            **DEFAULTS,
            **{name: type(DEFAULTS[name])(value) for name, value in (one.split("=") for one in sys.argv[1:])},
        }
    )
