"""Drones keep their places in a wind: advantage actor-critic on a list of environments, several steps a rollout."""

import argparse
import math
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Drone:
    """One drone over its place; five thrusts, a gusty wind, readings of twenty-four distances."""

    THRUSTS = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32)

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.angles = np.linspace(0, 2 * math.pi, 24, endpoint=False)
        self.reset()

    def reset(self):
        self.place, self.speed = self.rng.uniform(-3, 3, 2), np.zeros(2)
        self.age = 0
        return self.look()

    def look(self):
        rays = self.place[0] * np.cos(self.angles) + self.place[1] * np.sin(self.angles)
        return np.concatenate([self.place, self.speed, rays]).astype(np.float32)

    def step(self, action):
        self.speed = 0.9 * self.speed + 0.1 * self.THRUSTS[action] + self.rng.normal(0, 0.02, 2)
        self.place = self.place + self.speed
        self.age += 1
        distance = float(np.abs(self.place).sum())
        done = distance > 8 or self.age >= 200
        return (self.reset() if done else self.look()), -0.1 * distance, done


class Pilot(nn.Module):
    def __init__(self, readings, thrusts, hidden):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(readings, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.actor, self.critic = nn.Linear(hidden, thrusts), nn.Linear(hidden, 1)

    def forward(self, readings):
        h = self.trunk(readings)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


class Rollout(NamedTuple):
    readings: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    dones: torch.Tensor


class SingleRunner:
    """Each drone asks the pilot for itself."""

    def __init__(self, drones, pilot):
        self.drones, self.pilot = drones, pilot
        self.readings = [torch.from_numpy(drone.reset()) for drone in drones]

    @torch.no_grad()
    def play(self, length):
        rows = []
        for _ in range(length):
            row = []
            for i, drone in enumerate(self.drones):
                policy, _ = self.pilot(self.readings[i])
                action = policy.sample()
                following, reward, done = drone.step(action.item())
                row.append((self.readings[i], action, reward, done))
                self.readings[i] = torch.from_numpy(following)
            rows.append(row)
        readings, actions, rewards, dones = zip(*[zip(*row) for row in rows])
        return Rollout(
            torch.stack([torch.stack(one) for one in readings]),
            torch.stack([torch.stack(one) for one in actions]),
            torch.tensor(rewards),
            torch.tensor(dones, dtype=torch.float32),
        )

    def last(self):
        return torch.stack(self.readings)


class TogetherRunner:
    """The pilot is asked once for all drones."""

    def __init__(self, drones, pilot):
        self.drones, self.pilot = drones, pilot
        self.readings = torch.from_numpy(np.stack([drone.reset() for drone in drones]))

    @torch.no_grad()
    def play(self, length):
        rows = []
        for _ in range(length):
            actions = self.pilot(self.readings)[0].sample()
            seen, rewards, dones = zip(
                *[drone.step(one) for drone, one in zip(self.drones, actions.tolist())]
            )
            rows.append(
                (self.readings, actions, torch.tensor(rewards), torch.tensor(dones, dtype=torch.float32))
            )
            self.readings = torch.from_numpy(np.stack(seen))
        return Rollout(*map(torch.stack, zip(*rows)))

    def last(self):
        return self.readings


def returns(rollout, last, gamma):
    found, value = [], last
    for reward, done in zip(rollout.rewards.flip(0), rollout.dones.flip(0)):
        value = reward + gamma * value * (1 - done)
        found.append(value)
    return torch.stack(found[::-1])


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--drones", type=int, default=16)
    cli.add_argument("--length", type=int, default=16)
    cli.add_argument("--updates", type=int, default=520)
    cli.add_argument("--hidden", type=int, default=256)
    cli.add_argument("--fixed", action="store_true", help="ask the pilot once for all drones")
    args = cli.parse_args()
    torch.manual_seed(77)
    drones = [Drone(seed) for seed in range(args.drones)]
    pilot = Pilot(len(drones[0].look()), len(Drone.THRUSTS), args.hidden)
    optimizer = torch.optim.RMSprop(pilot.parameters(), lr=7e-4, alpha=0.99, eps=1e-5)
    runner = (TogetherRunner if args.fixed else SingleRunner)(drones, pilot)
    for update in range(1, args.updates + 1):
        rollout = runner.play(args.length)
        with torch.no_grad():
            target = returns(rollout, pilot(runner.last())[1], 0.98)
        policy, value = pilot(rollout.readings)
        advantage = (target - value).detach()
        loss = (
            -(policy.log_prob(rollout.actions) * advantage).mean()
            + 0.5 * (target - value).square().mean()
            - 0.01 * policy.entropy().mean()
        )
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(pilot.parameters(), 0.5)
        optimizer.step()
        if update % 40 == 0:
            print(f"{update}: reward {rollout.rewards.mean().item():.3f}")


if __name__ == "__main__":
    main()
