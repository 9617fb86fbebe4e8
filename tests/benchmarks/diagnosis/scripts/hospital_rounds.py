"""Federated averaging over hospitals: each trains on its own patients, the weights are averaged every round."""

import argparse
import copy

import torch
import torch.nn.functional as F
from torch import nn


class RiskNet(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.layers = nn.ModuleList([nn.Linear(features, hidden), nn.Linear(hidden, hidden)])
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        x = self.norm(x)
        for layer in self.layers:
            x = F.gelu(layer(x))
        return self.out(x)


class Client:
    def __init__(self, name, patients, outcome, args):
        self.name = name
        self.patients, self.outcome = patients, outcome
        self.args = args

    def local_update(self, global_model, generator):
        """The weights after some epochs here, how many patients they saw, and the mean loss."""
        model = copy.deepcopy(global_model).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=self.args.lr, momentum=0.9)
        seen = torch.zeros(())
        steps = 0
        for _ in range(self.args.local_epochs):
            order = torch.randperm(len(self.patients), generator=generator)
            for rows in order.split(self.args.local_bs):
                loss = F.cross_entropy(model(self.patients[rows]), self.outcome[rows])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seen += loss.detach()
                steps += 1
        return model.state_dict(), len(self.patients), seen / steps


class Server:
    def __init__(self, model, clients, args):
        self.model, self.clients, self.args = model, clients, args
        self.generator = torch.Generator().manual_seed(args.seed)

    def choose(self):
        picked = torch.randperm(len(self.clients), generator=self.generator)[: self.args.clients_per_round]
        return [self.clients[i] for i in picked.tolist()]

    def aggregate(self, updates):
        total = sum(n for _, n, _ in updates)
        mean = {k: sum(state[k] * (n / total) for state, n, _ in updates) for k in updates[0][0]}
        self.model.load_state_dict(mean)

    def fit(self):
        for r in range(self.args.rounds):
            updates = [client.local_update(self.model, self.generator) for client in self.choose()]
            self.aggregate(updates)
            if (r + 1) % 3 == 0:
                print(f"round {r + 1}: {torch.stack([loss for *_, loss in updates]).mean().item():.4f}")


def build_clients(args):
    clients = []
    for h in range(args.hospitals):
        g = torch.Generator().manual_seed(1000 + h)
        x = torch.randn(args.patients, args.features, generator=g) + 0.1 * h
        y = (x[:, : args.classes] + 0.3 * torch.randn(args.patients, args.classes, generator=g)).argmax(1)
        clients.append(Client(f"hospital {h}", x, y, args))
    return clients


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--hospitals", type=int, default=12)
    p.add_argument("--clients-per-round", type=int, default=4)
    p.add_argument("--patients", type=int, default=1600)
    p.add_argument("--local-epochs", type=int, default=1)
    p.add_argument("--local-bs", type=int, default=8)
    p.add_argument("--features", type=int, default=48)
    p.add_argument("--classes", type=int, default=6)
    p.add_argument("--hidden", type=int, default=160)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--fixed", action="store_true", help="160 patients at a time")
    args = p.parse_args()
    if args.fixed:
        args.local_bs = 160
    return args


if __name__ == "__main__":
    args = parse()
    torch.manual_seed(args.seed)
    Server(RiskNet(args.features, args.hidden, args.classes), build_clients(args), args).fit()
