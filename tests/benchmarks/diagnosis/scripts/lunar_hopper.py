"""An off-policy agent lands a hopper: a list of transitions, a target network, epsilon-greedy."""

import argparse
import collections
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

Transition = collections.namedtuple("Transition", "state action reward following done")


class Hopper:
    """Height, speed and 22 readings of the ground below; thrust or do not."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.height, self.speed = 10.0, 0.0
        self.ground = self.rng.normal(size=22).tolist()
        return self.observe()

    def observe(self):
        return [self.height, self.speed, *self.ground]

    def step(self, action):
        self.speed += (0.4 if action == 1 else 0.8 if action == 2 else 0.0) - 0.3
        self.height += 0.2 * self.speed
        done = self.height <= 0 or self.height > 25
        reward = -0.01 - (abs(self.speed) if done else 0.0)
        return self.observe(), reward, done


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = collections.deque(maxlen=capacity)

    def push(self, *values):
        self.memory.append(Transition(*values))

    def sample(self, n):
        batch = Transition(*zip(*random.sample(self.memory, n)))
        return (
            torch.tensor(batch.state, dtype=torch.float32),
            torch.tensor(batch.action),
            torch.tensor(batch.reward, dtype=torch.float32),
            torch.tensor(batch.following, dtype=torch.float32),
            torch.tensor(batch.done, dtype=torch.float32),
        )

    def __len__(self):
        return len(self.memory)


class TensorMemory:
    """The same in preallocated tensors."""

    def __init__(self, capacity, n_state):
        self.state, self.following = torch.zeros(capacity, n_state), torch.zeros(capacity, n_state)
        self.action = torch.zeros(capacity, dtype=torch.long)
        self.reward, self.done = torch.zeros(capacity), torch.zeros(capacity)
        self.count, self.capacity = 0, capacity

    def push(self, state, action, reward, following, done):
        i = self.count % self.capacity
        self.state[i], self.following[i] = torch.tensor(state), torch.tensor(following)
        self.action[i], self.reward[i], self.done[i] = action, reward, float(done)
        self.count += 1

    def sample(self, n):
        rows = torch.randint(len(self), (n,))
        return self.state[rows], self.action[rows], self.reward[rows], self.following[rows], self.done[rows]

    def __len__(self):
        return min(self.count, self.capacity)


class QNetwork(nn.Module):
    def __init__(self, n_state, n_action, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_state, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.value, self.advantage = nn.Linear(hidden, 1), nn.Linear(hidden, n_action)

    def forward(self, state):
        h = self.layers(state)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


class DQNAgent:
    def __init__(self, args):
        self.args = args
        self.env = Hopper(args.seed)
        n_state = len(self.env.observe())
        self.policy_net = QNetwork(n_state, 3, args.hidden)
        self.target_net = QNetwork(n_state, 3, args.hidden).requires_grad_(False)
        self.target_net.load_state_dict(self.policy_net.state_dict())
        self.optimizer = torch.optim.Adam(self.policy_net.parameters(), lr=args.lr, fused=True)
        self.memory = TensorMemory(20_000, n_state) if args.fixed else ReplayMemory(20_000)
        self.updates = 0

    @torch.no_grad()
    def act(self, state):
        if random.random() < 0.1:
            return random.randrange(3)
        return int(self.policy_net(torch.tensor(state)).argmax())

    def learn(self):
        state, action, reward, following, done = self.memory.sample(self.args.batch_size)
        with torch.no_grad():
            best = self.policy_net(following).argmax(1, keepdim=True)
            target = reward + 0.99 * (1 - done) * self.target_net(following).gather(1, best).squeeze(1)
        q = self.policy_net(state).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.updates += 1
        if self.updates % 100 == 0:
            self.target_net.load_state_dict(self.policy_net.state_dict())

    def train(self):
        state, frames, episode_reward = self.env.reset(), 0, 0.0
        while self.updates < self.args.updates:
            action = self.act(state)
            following, reward, done = self.env.step(action)
            self.memory.push(state, action, reward, following, done)
            episode_reward += reward
            frames += 1
            state = self.env.reset() if done else following
            if len(self.memory) >= 1000 and frames % self.args.train_every == 0:
                self.learn()
                if self.updates % 100 == 0:
                    print(f"{self.updates}: reward so far {episode_reward / frames:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=700)
    parser.add_argument("--train-every", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=192)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="transitions in tensors")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    DQNAgent(args).train()
