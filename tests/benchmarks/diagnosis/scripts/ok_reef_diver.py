"""A diver collects pearls: double, dueling, three-step Q-learning, replay by priority from a sum tree in NumPy."""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, PLANES, ACTIONS = 10, 4, 5
MOVES = np.array([[0, 0], [0, 1], [0, -1], [1, 0], [-1, 0]])


class Reefs:
    """Many reefs at once: the diver, pearls, two sharks that swim along their rows, and what is left of the air."""

    def __init__(self, count, seed):
        self.rng, self.count = np.random.default_rng(seed), count
        self.rows = np.arange(count)
        self.diver = self.rng.integers(SIZE, size=(count, 2))
        self.sharks = self.rng.integers(SIZE, size=(count, 2, 2))
        self.pearls = self.rng.random((count, SIZE, SIZE)) < 0.1
        self.air = np.zeros(count, dtype=int)

    def observe(self):
        seen = np.zeros((self.count, PLANES, SIZE, SIZE), dtype=np.uint8)
        seen[self.rows, 0, self.diver[:, 0], self.diver[:, 1]] = 1
        for shark in (0, 1):
            seen[self.rows, 1, self.sharks[:, shark, 0], self.sharks[:, shark, 1]] = 1
        seen[:, 2] = self.pearls
        seen[:, 3] = (self.air // 10)[:, None, None]
        return seen

    def step(self, actions):
        self.diver = np.clip(self.diver + MOVES[actions], 0, SIZE - 1)
        self.sharks[:, :, 1] = (self.sharks[:, :, 1] + [1, -1]) % SIZE
        self.air += 1
        x, y = self.diver.T
        reward = self.pearls[self.rows, x, y].astype(np.float32)
        self.pearls[self.rows, x, y] = False
        bitten = (self.sharks == self.diver[:, None]).all(2).any(1)
        done = bitten | (self.air >= 100)
        ended = int(done.sum())
        if ended:
            self.diver[done] = self.rng.integers(SIZE, size=(ended, 2))
            self.pearls[done] = self.rng.random((ended, SIZE, SIZE)) < 0.1
            self.air[done] = 0
        return self.observe(), reward - bitten, done


class SumTree:
    """Sums of priorities in a complete binary tree; whole batches go up and down level by level."""

    def __init__(self, capacity):
        assert capacity & (capacity - 1) == 0
        self.capacity, self.depth = capacity, capacity.bit_length() - 1
        self.sums = np.zeros(2 * capacity)

    def set(self, leaves, priorities):
        nodes = leaves + self.capacity
        self.sums[nodes] = priorities
        for _ in range(self.depth):
            nodes = nodes >> 1
            self.sums[nodes] = self.sums[2 * nodes] + self.sums[2 * nodes + 1]

    def find(self, masses):
        nodes = np.ones(len(masses), dtype=np.int64)
        for _ in range(self.depth):
            nodes = 2 * nodes
            left = self.sums[nodes]
            right = masses >= left
            masses = np.where(right, masses - left, masses)
            nodes = nodes + right
        return nodes - self.capacity, self.sums[nodes]


class PrioritizedReplay:
    """A ring of moments, each of all reefs. A moment may be drawn once its n steps are known."""

    def __init__(self, moments, reefs, n_step, gamma, alpha=0.6):
        self.moments, self.reefs, self.n, self.gamma, self.alpha = moments, reefs, n_step, gamma, alpha
        self.seen = np.zeros((moments, reefs, PLANES, SIZE, SIZE), dtype=np.uint8)
        self.actions = np.zeros((moments, reefs), dtype=np.int64)
        self.rewards = np.zeros((moments, reefs), dtype=np.float32)
        self.dones = np.zeros((moments, reefs), dtype=bool)
        self.tree, self.highest, self.written = SumTree(moments * reefs), 1.0, 0

    def add(self, seen, actions, rewards, dones):
        now = self.written % self.moments
        self.seen[now], self.actions[now], self.rewards[now], self.dones[now] = seen, actions, rewards, dones
        row = np.arange(self.reefs)
        self.tree.set(now * self.reefs + row, 0.0)
        if self.written >= self.n:
            ripe = (self.written - self.n) % self.moments
            self.tree.set(ripe * self.reefs + row, self.highest)
        self.written += 1

    def sample(self, count, beta):
        total = self.tree.sums[1]
        strata = (np.arange(count) + np.random.rand(count)) * (total / count)
        leaves, priorities = self.tree.find(np.minimum(strata, total * (1 - 1e-9)))
        moment, reef = np.divmod(leaves, self.reefs)
        reward, alive = np.zeros(count, np.float32), np.ones(count, np.float32)
        for k in range(self.n):
            at = (moment + k) % self.moments
            reward += self.gamma**k * alive * self.rewards[at, reef]
            alive *= ~self.dones[at, reef]
        filled = min(self.written, self.moments) * self.reefs
        weight = (filled * np.maximum(priorities, 1e-12) / total) ** -beta
        later = (moment + self.n) % self.moments
        columns = (
            self.seen[moment, reef],
            self.actions[moment, reef],
            reward,
            self.seen[later, reef],
            self.gamma**self.n * alive,
            (weight / weight.max()).astype(np.float32),
        )
        return leaves, [torch.from_numpy(column) for column in columns]

    def renew(self, leaves, errors):
        priorities = (errors + 1e-3) ** self.alpha
        self.highest = max(self.highest, float(priorities.max()))
        self.tree.set(leaves, priorities)


class DuelingNet(nn.Module):
    def __init__(self, channels=24, hidden=192):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(PLANES, channels, 3),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(channels * (SIZE - 2) ** 2, hidden),
            nn.ReLU(),
        )
        self.value, self.advantage = nn.Linear(hidden, 1), nn.Linear(hidden, ACTIONS)

    def forward(self, seen):
        h = self.look(seen.float())
        advantage = self.advantage(h)
        return self.value(h) + advantage - advantage.mean(1, keepdim=True)


def train(args):
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    reefs = Reefs(args.reefs, args.seed)
    replay = PrioritizedReplay(args.moments, args.reefs, args.n_step, args.gamma)
    online, target = DuelingNet(), DuelingNet().requires_grad_(False)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=args.lr, eps=1.5e-4, fused=True)
    seen, earned = reefs.observe(), []
    for moment in range(args.warm_up + args.updates * args.every):
        epsilon = max(0.05, 1 - moment / (args.warm_up + 600))
        with torch.no_grad():
            greedy = online(torch.from_numpy(seen)).argmax(1).numpy()
        random = np.random.randint(ACTIONS, size=args.reefs)
        actions = np.where(np.random.rand(args.reefs) < epsilon, random, greedy)
        following, rewards, dones = reefs.step(actions)
        replay.add(seen, actions, rewards, dones)
        seen = following
        earned.append(rewards.mean())
        if moment < args.warm_up or moment % args.every:
            continue
        update = (moment - args.warm_up) // args.every
        leaves, batch = replay.sample(args.batch_size, 0.4 + 0.6 * update / args.updates)
        now, chosen, reward, later, discount, weight = batch
        with torch.no_grad():
            best = online(later).argmax(1, keepdim=True)
            goal = reward + discount * target(later).gather(1, best).squeeze(1)
        value = online(now).gather(1, chosen[:, None]).squeeze(1)
        loss = (weight * F.smooth_l1_loss(value, goal, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        optimizer.step()
        replay.renew(leaves, (value.detach() - goal).abs().numpy())
        if update % args.target_every == 0:
            target.load_state_dict(online.state_dict())
        if update % 100 == 99:
            print(f"update {update + 1}: reward {np.mean(earned[-400:]):.4f} loss {loss.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--reefs", type=int, default=16)
    parser.add_argument("--moments", type=int, default=1024)
    parser.add_argument("--updates", type=int, default=700)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--target-every", type=int, default=100)
    parser.add_argument("--n-step", type=int, default=3)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=14)
    train(parser.parse_args())
