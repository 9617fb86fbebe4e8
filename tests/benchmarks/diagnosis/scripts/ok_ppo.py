"""Proximal policy optimization in a grid of corridors: rollouts, advantages, a few epochs on each rollout."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


@dataclass
class PPOConfig:
    envs: int = 256
    horizon: int = 16
    iterations: int = 14
    epochs: int = 3
    minibatch: int = 1024
    gamma: float = 0.98
    lam: float = 0.95
    clip: float = 0.2
    lr: float = 3e-4
    entropy: float = 0.01
    max_grad_norm: float = 0.5
    hidden: int = 512
    seed: int = 23


class Corridors:
    """All games in one tensor: go to the goal, one cell at a time."""

    def __init__(self, n, side=12):
        self.n, self.side = n, side
        self.moves = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])
        self.place = torch.randint(side, (n, 2))
        self.goal = torch.randint(side, (n, 2))

    def observe(self):
        here = F.one_hot(self.place, self.side).flatten(1)
        goal = F.one_hot(self.goal, self.side).flatten(1)
        return torch.cat([here, goal], dim=1).float()

    def step(self, action):
        self.place = (self.place + self.moves[action]).clamp(0, self.side - 1)
        arrived = (self.place == self.goal).all(1)
        self.goal = torch.where(arrived[:, None], torch.randint(self.side, (self.n, 2)), self.goal)
        return self.observe(), arrived.float() - 0.01, arrived


class Agent(nn.Module):
    def __init__(self, n_in, hidden, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


class RolloutBuffer:
    def __init__(self):
        self.fields = {}

    def add(self, **values):
        for name, value in values.items():
            self.fields.setdefault(name, []).append(value)

    def stacked(self):
        return {name: torch.stack(values) for name, values in self.fields.items()}


class PPO:
    def __init__(self, cfg):
        self.cfg = cfg
        self.env = Corridors(cfg.envs)
        self.agent = Agent(self.env.observe().shape[1], cfg.hidden)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=cfg.lr, eps=1e-5, fused=True)

    @torch.no_grad()
    def collect(self):
        buffer, state = RolloutBuffer(), self.env.observe()
        for _ in range(self.cfg.horizon):
            policy, value = self.agent(state)
            action = policy.sample()
            following, reward, done = self.env.step(action)
            buffer.add(
                state=state, action=action, logp=policy.log_prob(action), value=value, reward=reward,
                live=1 - done.float(),
            )  # fmt: skip
            state = following
        return buffer.stacked(), self.agent(state)[1]

    def advantages(self, roll, last_value):
        gae, out = torch.zeros(self.cfg.envs), []
        following = last_value
        for t in reversed(range(self.cfg.horizon)):
            delta = roll["reward"][t] + self.cfg.gamma * following * roll["live"][t] - roll["value"][t]
            gae = delta + self.cfg.gamma * self.cfg.lam * roll["live"][t] * gae
            following = roll["value"][t]
            out.append(gae)
        return torch.stack(out[::-1])

    def loss(self, batch):
        policy, value = self.agent(batch["state"])
        ratio = (policy.log_prob(batch["action"]) - batch["logp"]).exp()
        gain = batch["advantage"]
        clipped = ratio.clamp(1 - self.cfg.clip, 1 + self.cfg.clip)
        actor = -torch.minimum(ratio * gain, clipped * gain).mean()
        critic = F.mse_loss(value, batch["return"])
        return actor + 0.5 * critic - self.cfg.entropy * policy.entropy().mean()

    def learn(self):
        for iteration in range(self.cfg.iterations):
            roll, last_value = self.collect()
            advantage = self.advantages(roll, last_value)
            reward = roll["reward"].mean().item()
            roll = {**roll, "return": advantage + roll["value"]}
            roll["advantage"] = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            flat = {name: value.flatten(0, 1) for name, value in roll.items()}
            for _ in range(self.cfg.epochs):
                for rows in torch.randperm(self.cfg.envs * self.cfg.horizon).split(self.cfg.minibatch):
                    loss = self.loss({name: value[rows] for name, value in flat.items()})
                    self.optimizer.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(self.agent.parameters(), self.cfg.max_grad_norm)
                    self.optimizer.step()
            print(f"iteration {iteration}: reward {reward:.4f}")


if __name__ == "__main__":
    config = PPOConfig()
    torch.manual_seed(config.seed)
    PPO(config).learn()
