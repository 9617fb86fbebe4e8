"""Learning to land from recorded flights alone (implicit Q-learning): three networks, three optimizers, a slow copy."""

import argparse
import copy
import pathlib
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

KEYS = ("state", "action", "reward", "following", "done")


def record(path, count):
    """Flights of a mediocre pilot, as one archive."""
    rng = np.random.default_rng(9)
    state = rng.normal(size=(count, 18)).astype(np.float32)
    action = np.tanh(state[:, :4] + rng.normal(0, 0.6, (count, 4))).astype(np.float32)
    following = state + 0.1 * np.tanh(state[:, ::-1]) + 0.1 * np.tile(action, 5)[:, :18]
    reward = -np.abs(following).mean(1)
    done = rng.random(count) < 0.01
    np.savez(path, state=state, action=action, reward=reward, following=following, done=done)


def transitions(path, batch_size, generator):
    """Batches of one archive without an end, read into memory once and mixed up for every pass."""
    with np.load(path) as archive:
        columns = [torch.from_numpy(archive[key]).float() for key in KEYS]
    while True:
        for rows in torch.randperm(len(columns[0]), generator=generator).split(batch_size):
            yield [column[rows] for column in columns]


def mlp(*sizes):
    layers = []
    for before, after in zip(sizes, sizes[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class TwinQ(nn.Module):
    def __init__(self, state, action, hidden):
        super().__init__()
        self.q1, self.q2 = mlp(state + action, hidden, hidden, 1), mlp(state + action, hidden, hidden, 1)

    def forward(self, state, action):
        both = torch.cat([state, action], 1)
        return self.q1(both).squeeze(1), self.q2(both).squeeze(1)


class IQL:
    def __init__(self, args, state=18, action=4):
        self.args = args
        self.q = TwinQ(state, action, args.hidden)
        self.target = copy.deepcopy(self.q).requires_grad_(False)
        self.value = mlp(state, args.hidden, args.hidden, 1)
        self.actor = mlp(state, args.hidden, args.hidden, action)
        self.pairs = list(self.target.parameters()), list(self.q.parameters())
        self.optimizers = {
            name: torch.optim.Adam(getattr(self, name).parameters(), lr=args.lr, fused=True)
            for name in ("q", "value", "actor")
        }
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizers["actor"], args.updates)

    def descend(self, name, loss):
        self.optimizers[name].zero_grad()
        loss.backward()
        self.optimizers[name].step()

    def update(self, state, action, reward, following, done):
        with torch.no_grad():
            worth = torch.minimum(*self.target(state, action))
            later = self.value(following).squeeze(1)
        value = self.value(state).squeeze(1)
        edge = worth - value
        expectile = torch.where(edge > 0, self.args.tau, 1 - self.args.tau)
        self.descend("value", (expectile * edge.square()).mean())
        goal = reward + self.args.gamma * (1 - done) * later
        self.descend("q", sum(F.mse_loss(q, goal) for q in self.q(state, action)))
        weight = (self.args.beta * edge.detach()).exp().clamp(max=100)
        error = (self.actor(state).tanh() - action).square().sum(1)
        actor_loss = (weight * error).mean()
        self.descend("actor", actor_loss)
        self.schedule.step()
        torch._foreach_lerp_(*self.pairs, 0.005)
        return actor_loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=1700)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--tau", type=float, default=0.7)
    parser.add_argument("--beta", type=float, default=3.0)
    parser.add_argument("--gamma", type=float, default=0.99)
    args = parser.parse_args()
    torch.manual_seed(9)
    with tempfile.TemporaryDirectory() as folder:
        flights = pathlib.Path(folder) / "flights.npz"
        record(flights, 40_000)
        agent, kept = IQL(args), []
        for update, batch in zip(
            range(1, args.updates + 1), transitions(flights, args.batch_size, torch.Generator())
        ):
            kept.append(agent.update(*batch))
            if update % 150 == 0:
                print(f"{update}: actor loss {torch.stack(kept).mean().item():.3f}")
                kept.clear()


if __name__ == "__main__":
    main()
