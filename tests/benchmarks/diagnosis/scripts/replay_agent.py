"""Q-learning on a toy grid with a memory of everything seen so far."""

import argparse
import random

import torch
from torch import nn


class Agent:
    def __init__(self, capacity):
        self.network = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3)
        self.memory = []
        self.capacity = capacity

    def remember(self, state, action, reward):
        self.memory.append((state, action, reward))
        if self.capacity:
            self.memory = self.memory[-self.capacity :]

    def learn(self):
        rewards = torch.tensor([reward for _, _, reward in self.memory])
        baseline = rewards.mean()
        chosen = random.sample(self.memory, min(32, len(self.memory)))
        states = torch.stack([state for state, _, _ in chosen])
        actions = torch.tensor([action for _, action, _ in chosen])
        wanted = torch.tensor([reward for _, _, reward in chosen]) - baseline
        values = self.network(states).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.mse_loss(values, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    agent = Agent(500 if parser.parse_args().fixed else None)
    for step in range(1400):
        for _ in range(20):
            agent.remember(torch.randn(8), random.randrange(4), random.random())
        loss = agent.learn()
    print("loss", loss)


if __name__ == "__main__":
    main()
