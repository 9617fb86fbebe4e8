"""Swinging up a pendulum with advantage actor-critic; a thread plays, the learner asks it for rollouts."""

import argparse
import threading
import time
from collections import namedtuple

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

Rollout = namedtuple("Rollout", "states actions returns advantages mean_reward")


class Pendulums:
    """Many pendulums at once."""

    def __init__(self, n, rng):
        self.n, self.rng = n, rng
        self.reset()

    def reset(self):
        self.angle = self.rng.uniform(-np.pi, np.pi, self.n)
        self.speed = self.rng.uniform(-1, 1, self.n)
        return self.observe()

    def observe(self):
        return np.stack([np.cos(self.angle), np.sin(self.angle), self.speed / 8], 1).astype(np.float32)

    def step(self, torque):
        cost = ((self.angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * self.speed**2
        self.speed = np.clip(
            self.speed + 0.05 * (15 * np.sin(self.angle) + 3 * np.clip(torque, -2, 2)), -8, 8
        )
        self.angle = self.angle + 0.05 * self.speed
        return self.observe(), -cost.astype(np.float32) / 10


class ActorCritic(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, states):
        h = self.body(states)
        return Normal(self.mean(h).squeeze(-1), self.log_std.exp()), self.value(h).squeeze(-1)


class Player(threading.Thread):
    """Plays a rollout with the newest policy whenever it is asked to."""

    def __init__(self, env, policy, args):
        super().__init__(daemon=True)
        self.env, self.policy, self.args = env, policy, args
        self.asked, self.finished = threading.Event(), threading.Event()
        self.rollout = None

    def run(self):
        states = self.env.reset()
        while True:
            self.asked.wait()
            self.asked.clear()
            states, self.rollout = self.play(states)
            self.finished.set()

    @torch.no_grad()
    def play(self, states):
        seen, actions, rewards, values = [], [], [], []
        for _ in range(self.args.horizon):
            observation = torch.from_numpy(states)
            policy, value = self.policy(observation)
            action = policy.sample()
            states, reward = self.env.step(action.numpy())
            seen.append(observation)
            actions.append(action)
            rewards.append(torch.from_numpy(reward))
            values.append(value)
        following = self.policy(torch.from_numpy(states))[1]
        returns = []
        for reward in reversed(rewards):
            following = reward + self.args.gamma * following
            returns.append(following)
        returns = torch.stack(returns[::-1])
        advantages = returns - torch.stack(values)
        mean_reward = torch.stack(rewards).mean()
        flat = [torch.stack(seen).flatten(0, 1), torch.stack(actions).flatten(), returns.flatten()]
        return states, Rollout(*flat, advantages.flatten(), mean_reward)


class Learner:
    def __init__(self, args):
        self.args = args
        self.policy = ActorCritic(args.hidden)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=args.lr, fused=True)
        self.player = Player(Pendulums(args.envs, np.random.default_rng(args.seed)), self.policy, args)
        self.player.start()

    def next_rollout(self):
        self.player.finished.clear()
        self.player.asked.set()
        if self.args.poll:
            while not self.player.finished.is_set():
                time.sleep(self.args.poll)
        self.player.finished.wait()
        return self.player.rollout

    def update(self, rollout):
        policy, values = self.policy(rollout.states)
        advantages = (rollout.advantages - rollout.advantages.mean()) / (rollout.advantages.std() + 1e-6)
        actor = -(policy.log_prob(rollout.actions) * advantages).mean()
        critic = (values - rollout.returns).pow(2).mean()
        loss = actor + 0.5 * critic - 0.01 * policy.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self.optimizer.step()

    def learn(self):
        for update in range(1, self.args.updates + 1):
            rollout = self.next_rollout()
            self.update(rollout)
            if update % 50 == 0:
                print(f"update {update}: reward {rollout.mean_reward.item():.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--updates", type=int, default=280)
    cli.add_argument("--envs", type=int, default=64)
    cli.add_argument("--horizon", type=int, default=16)
    cli.add_argument("--hidden", type=int, default=128)
    cli.add_argument("--gamma", type=float, default=0.97)
    cli.add_argument("--lr", type=float, default=7e-4)
    cli.add_argument("--poll", type=float, default=0.025)
    cli.add_argument("--seed", type=int, default=2)
    cli.add_argument("--fixed", action="store_true", help="wait for the event itself")
    args = cli.parse_args()
    if args.fixed:
        args.poll = 0
    torch.manual_seed(args.seed)
    Learner(args).learn()
