"""DQN in a grid world: a replay memory of Python objects, gathered sample by sample."""

import random
import sys
from collections import deque, namedtuple

import numpy as np
import torch
from torch import nn

Transition = namedtuple("Transition", "state action reward after done")
random.seed(1)
np.random.seed(1)
torch.manual_seed(1)


class ListMemory:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, *args):
        self.items.append(Transition(*args))

    def sample(self, n):
        rows = random.sample(self.items, n)
        out = []
        for name in Transition._fields:
            column = [torch.as_tensor(np.array(getattr(row, name)), dtype=torch.float32) for row in rows]
            out.append(torch.stack(column).cuda())
        return out


class ArrayMemory:
    def __init__(self, size):
        self.states, self.after = np.zeros((size, 49), np.float32), np.zeros((size, 49), np.float32)
        self.rest, self.n = np.zeros((size, 3), np.float32), 0

    def push(self, state, action, reward, after, done):
        i = self.n % len(self.states)
        self.states[i], self.after[i], self.rest[i] = state, after, (action, reward, done)
        self.n += 1

    def sample(self, n):
        i = np.random.randint(0, min(self.n, len(self.states)), n)
        rows = np.concatenate([self.states[i], self.after[i], self.rest[i]], 1)
        rows = torch.from_numpy(rows).pin_memory().to("cuda", non_blocking=True)
        return rows[:, :49], rows[:, 98], rows[:, 99], rows[:, 49:98], rows[:, 100]


def observe(place):
    grid = np.zeros(49, np.float32)
    grid[place] = 1
    return grid


memory = (ArrayMemory if "--fixed" in sys.argv else ListMemory)(5000)
online = nn.Sequential(
    nn.Linear(49, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
).cuda()
target = nn.Sequential(
    nn.Linear(49, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)
).cuda()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.RMSprop(online.parameters(), lr=2e-4)
place = 24
for step in range(1100):
    action = random.randrange(4)
    moved = max(0, min(48, place + (-7, 7, -1, 1)[action]))
    memory.push(observe(place), action, float(moved == 48), observe(moved), float(moved == 48))
    place = 24 if moved == 48 else moved
    if step < 160:
        continue
    state, act, reward, after, done = memory.sample(128)
    with torch.no_grad():
        best = reward + 0.98 * (1 - done) * target(after).amax(1)
    q = online(state).gather(1, act.long().unsqueeze(1)).squeeze(1)
    loss = nn.functional.smooth_l1_loss(q, best)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        target.load_state_dict(online.state_dict())
print("loss", loss.item())
