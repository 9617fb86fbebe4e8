"""A graph network over twelve kinds of edges, each with its own weights and its own pass."""

import argparse

import torch
from torch import nn

NODES, EDGES, KINDS, DIM = 300, 800, 12, 16


class Relational(nn.Module):
    def __init__(self, together):
        super().__init__()
        self.together = together
        self.weight = nn.Parameter(torch.randn(KINDS, DIM, DIM) / DIM**0.5)
        self.own = nn.Linear(DIM, DIM)

    def forward(self, x, edges):
        return torch.relu(self.own(x) + (self.at_once(x, edges) if self.together else self.by_kind(x, edges)))

    def by_kind(self, x, edges):
        out = torch.zeros_like(x)
        for kind in range(KINDS):
            source, target = edges[kind]
            message = x[source] @ self.weight[kind]
            degree = torch.ones(NODES, device=x.device).index_add(
                0, target, torch.ones(EDGES, device=x.device)
            )
            out = out + torch.zeros_like(x).index_add(0, target, message) / degree[:, None]
        return out

    def at_once(self, x, edges):
        source, target, scale = edges
        message = torch.bmm(x[source].view(KINDS, EDGES, DIM), self.weight).view(-1, DIM) * scale
        return torch.zeros_like(x).index_add(0, target, message)


def graph(together):
    edges = [
        (torch.randint(NODES, (EDGES,)).cuda(), torch.randint(NODES, (EDGES,)).cuda()) for _ in range(KINDS)
    ]
    if not together:
        return edges
    scales = []
    for _, target in edges:
        degree = torch.ones(NODES, device="cuda").index_add(0, target, torch.ones(EDGES, device="cuda"))
        scales.append(1 / degree[target])
    return torch.cat([s for s, _ in edges]), torch.cat([t for _, t in edges]), torch.cat(scales)[:, None]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    together = parser.parse_args().fixed
    torch.manual_seed(17)
    edges = graph(together)
    layers = nn.ModuleList([Relational(together), Relational(together)]).cuda()
    out = nn.Linear(DIM, 7).cuda()
    x = torch.randn(NODES, DIM, device="cuda")
    y = torch.randint(7, (NODES,), device="cuda")
    optimizer = torch.optim.Adam([*layers.parameters(), *out.parameters()], lr=0.01)
    for epoch in range(380):
        h = x
        for layer in layers:
            h = layer(h, edges)
        loss = nn.functional.cross_entropy(out(h), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 50 == 49:
            print(f"epoch {epoch + 1}: {loss.item():.3f}")


main()
