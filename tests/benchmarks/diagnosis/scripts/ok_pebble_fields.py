"""Shapes of pebbles as signed distances: a code for each pebble, gradients of length one everywhere (eikonal)."""

import argparse
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Specs:
    pebbles: int = 24
    cloud: int = 3000
    latent: int = 16
    width: int = 128
    layers: int = 5
    skip: int = 3
    scenes_per_batch: int = 6
    points: int = 192
    steps: int = 330
    lr_net: float = 1e-3
    lr_codes: float = 2e-3
    eikonal: float = 0.1
    normals: float = 0.5
    code_reg: float = 1e-3
    seed: int = 52


def clouds(specs):
    """Points on bent ellipsoids with their normals."""
    g = torch.Generator().manual_seed(specs.seed)
    axes = 0.4 + 0.4 * torch.rand(specs.pebbles, 1, 3, generator=g)
    unit = F.normalize(torch.randn(specs.pebbles, specs.cloud, 3, generator=g), dim=-1)
    return unit * axes, F.normalize(unit / axes, dim=-1)


class ImplicitNet(nn.Module):
    def __init__(self, specs):
        super().__init__()
        before = specs.latent + 3
        self.skip = specs.skip
        self.layers = nn.ModuleList()
        for n in range(specs.layers):
            first = before if n == 0 else specs.width + (before if n == specs.skip else 0)
            self.layers.append(nn.Linear(first, specs.width))
        self.last = nn.Linear(specs.width, 1)
        nn.init.constant_(self.last.bias, -0.5)
        self.activation = nn.Softplus(beta=100)

    def forward(self, points, codes):
        given = torch.cat([points, codes], -1)
        x = given
        for n, layer in enumerate(self.layers):
            x = self.activation(layer(torch.cat([x, given], -1) if n == self.skip else x))
        return self.last(x).squeeze(-1)


def slope(points, distance):
    (found,) = torch.autograd.grad(distance.sum(), points, create_graph=True)
    return found


class ReconstructionRunner:
    def __init__(self, specs):
        self.specs = specs
        self.surface, self.normals = clouds(specs)
        self.network = ImplicitNet(specs)
        self.codes = nn.Embedding(specs.pebbles, specs.latent)
        nn.init.normal_(self.codes.weight, 0, 0.01)
        self.optimizer = torch.optim.Adam(
            [
                {"params": self.network.parameters(), "lr": specs.lr_net},
                {"params": self.codes.parameters(), "lr": specs.lr_codes},
            ],
            fused=True,
        )
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [200, 280], 0.5)

    def sample(self):
        specs = self.specs
        scene = torch.randperm(specs.pebbles)[: specs.scenes_per_batch]
        index = torch.randint(specs.cloud, (specs.scenes_per_batch, specs.points))
        surface, normals = self.surface[scene[:, None], index], self.normals[scene[:, None], index]
        near = surface[:, ::2] + 0.1 * torch.randn(surface[:, ::2].shape)
        far = torch.empty(specs.scenes_per_batch, specs.points // 4, 3).uniform_(-1, 1)
        return scene, surface, normals, torch.cat([near, far], 1)

    def losses(self):
        scene, surface, normals, around = self.sample()
        code = self.codes(scene)
        points = torch.cat([surface, around], 1).requires_grad_()
        distance = self.network(points, code[:, None].expand(-1, points.shape[1], -1))
        gradient = slope(points, distance)
        on = surface.shape[1]
        return {
            "manifold": distance[:, :on].abs().mean(),
            "normals": self.specs.normals * (gradient[:, :on] - normals).norm(dim=-1).mean(),
            "eikonal": self.specs.eikonal * (gradient[:, on:].norm(dim=-1) - 1).square().mean(),
            "codes": self.specs.code_reg * code.square().sum(-1).mean(),
        }

    @torch.no_grad()
    def check(self):
        """How far from zero the field is on points nobody showed it."""
        points = self.surface[:, :64]
        codes = self.codes.weight[:, None].expand(-1, points.shape[1], -1)
        return self.network(points, codes).abs().mean().item()

    def run(self):
        for step in range(1, self.specs.steps + 1):
            losses = self.losses()
            self.optimizer.zero_grad()
            sum(losses.values()).backward()
            self.optimizer.step()
            self.scheduler.step()
            if step % 40 == 0:
                parts = " ".join(f"{name} {value.item():.4f}" for name, value in losses.items())
                print(f"Train step {step} [{parts}]")
            if step % 165 == 0:
                print(f"step {step}: off the surface by {self.check():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=Specs.steps)
    args = parser.parse_args()
    torch.manual_seed(Specs.seed)
    ReconstructionRunner(Specs(steps=args.steps)).run()
