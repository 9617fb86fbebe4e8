"""REINFORCE on a toy balancing task: the policy draws each action."""

import torch
from torch import nn
from torch.distributions import Categorical


class Pole:
    def reset(self):
        self.state = torch.randn(6) * 0.1
        return self.state

    def step(self, action):
        self.state = 0.97 * self.state + 0.1 * torch.randn(6) + 0.02 * (action - 0.5)
        return self.state, 1.0, bool(self.state.abs().max() > 1.5)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 128), nn.Linear(128, 2)
        self.saved, self.rewards = [], []

    def forward(self, x):
        return torch.softmax(self.second(torch.relu(self.first(x))), -1)


policy, pole = Policy(), Pole()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    distribution = Categorical(policy(state))
    action = distribution.sample()
    policy.saved.append(distribution.log_prob(action))
    return action.item()


def finish_episode():
    returns = torch.tensor(policy.rewards).flip(0).cumsum(0).flip(0)
    losses = [-chance * value for chance, value in zip(policy.saved, returns - returns.mean(), strict=True)]
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
    del policy.saved[:], policy.rewards[:]


for episode in range(150):
    state = pole.reset()
    for moment in range(25):
        action = select_action(state)
        state, reward, done = pole.step(action)
        policy.rewards.append(reward)
        if done:
            break
    finish_episode()
