"""A shock wave that no data describes: a physics-informed network for Burgers' equation, ever longer spans of time."""

import argparse

import torch
import torch.nn as nn

SPEED, STRENGTH = 0.4, 0.6


class Burgers:
    """u_t + u u_x = nu u_xx, with a wave front that is known exactly."""

    def __init__(self, viscosity):
        self.nu = viscosity

    def exact(self, points):
        x, t = points.unbind(1)
        return SPEED - STRENGTH * torch.tanh(STRENGTH * (x + 0.3 - SPEED * t) / (2 * self.nu))

    def residual(self, net, points):
        points.requires_grad_()
        u = net(points)
        u_x, u_t = torch.autograd.grad(u.sum(), points, create_graph=True)[0].unbind(1)
        u_xx = torch.autograd.grad(u_x.sum(), points, create_graph=True)[0][:, 0]
        return u_t + u * u_x - self.nu * u_xx


class Sampler:
    """Points inside, at the beginning and at both ends; the span of time grows."""

    def __init__(self, inside, edge):
        self.inside, self.edge = inside, edge

    def __call__(self, span):
        inside = torch.rand(self.inside, 2) * torch.tensor([2.0, span]) - torch.tensor([1.0, 0.0])
        start = torch.stack([2 * torch.rand(self.edge) - 1, torch.zeros(self.edge)], 1)
        ends = torch.stack([torch.sign(torch.rand(self.edge) - 0.5), span * torch.rand(self.edge)], 1)
        return inside, torch.cat([start, ends])


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        sizes = [2] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)
        for layer in (*self.hidden, self.out):
            nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, points):
        x = points
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.out(x).squeeze(1)


class Solver:
    def __init__(self, args):
        self.args = args
        self.equation, self.net = Burgers(args.viscosity), Net(args.width, args.depth)
        self.sampler = Sampler(args.inside, args.edge)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=args.lr, fused=True)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.998)
        line = torch.linspace(-1, 1, 80), torch.linspace(0, 1, 40)
        self.grid = torch.cartesian_prod(*line)

    def span(self, step):
        return min(1.0, 0.25 + step / (0.6 * self.args.steps))

    def step(self, step):
        inside, edge = self.sampler(self.span(step))
        physics = self.equation.residual(self.net, inside).square().mean()
        known = (self.net(edge) - self.equation.exact(edge)).square().mean()
        loss = physics + self.args.edge_weight * known
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return loss.detach()

    @torch.no_grad()
    def error(self):
        truth = self.equation.exact(self.grid)
        return ((self.net(self.grid) - truth).norm() / truth.norm()).item()

    def solve(self):
        for step in range(1, self.args.steps + 1):
            loss = self.step(step)
            if step % 80 == 0:
                print(f"{step}: span {self.span(step):.2f} loss {loss.item():.5f} error {self.error():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=560)
    parser.add_argument("--inside", type=int, default=2000)
    parser.add_argument("--edge", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--viscosity", type=float, default=0.05)
    parser.add_argument("--edge-weight", type=float, default=20.0)
    parser.add_argument("--lr", type=float, default=2e-3)
    torch.manual_seed(6)
    Solver(parser.parse_args()).solve()
