"""Learning four-in-a-row from nothing but games with itself: tree search on many boards at once, then training."""

import argparse
from collections import deque
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLUMNS = 6, 7
# A board is two words of 64 bits: stones of who is to move, and all stones. Seven bits a column.
CELLS = np.array([[7 * column + row for column in range(COLUMNS)] for row in range(ROWS)])
BOTTOM = np.array([1 << (7 * column) for column in range(COLUMNS)])
TOP = np.array([1 << (7 * column + ROWS - 1) for column in range(COLUMNS)])
FULL = int(sum(1 << int(cell) for cell in CELLS.flatten()))


def play(own, stones, column):
    """Boards after the moves, seen by the other side."""
    return own ^ stones, stones | (stones + BOTTOM[column])


def four(stones):
    found = np.zeros(len(stones), dtype=bool)
    for shift in (1, 6, 7, 8):
        pairs = stones & (stones >> shift)
        found |= (pairs & (pairs >> (2 * shift))) != 0
    return found


def open_columns(stones):
    return (stones[:, None] & TOP) == 0


def planes(own, stones):
    both = np.stack([own, own ^ stones], 1)[:, :, None, None]
    return torch.from_numpy(((both >> CELLS) & 1).astype(np.float32))


class PolicyValueNet(nn.Module):
    def __init__(self, width=48, blocks=2):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(2, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(blocks)
        )
        self.neck = nn.Conv2d(width, 8, 1)
        self.policy = nn.Linear(8 * ROWS * COLUMNS, COLUMNS)
        self.value = nn.Sequential(nn.Linear(8 * ROWS * COLUMNS, 48), nn.ReLU(), nn.Linear(48, 1), nn.Tanh())

    def forward(self, x):
        x = F.relu(self.stem(x))
        for block in self.blocks:
            x = F.relu(x + block(x))
        x = F.relu(self.neck(x)).flatten(1)
        return self.policy(x), self.value(x).squeeze(1)


@dataclass
class Args:
    games: int = 64
    simulations: int = 14
    iterations: int = 5
    moves: int = 26
    train_steps: int = 45
    batch_size: int = 128
    window: int = 6000
    c_puct: float = 1.5
    noise: float = 0.25
    lr: float = 2e-3


class MCTS:
    """One tree for each game; a simulation of all trees asks the network once."""

    def __init__(self, net, args):
        self.net, self.args = net, args

    @torch.inference_mode()
    def evaluate(self, own, stones):
        self.net.eval()
        logits, value = self.net(planes(own, stones))
        prior = np.where(open_columns(stones), logits.softmax(1).numpy(), 0.0)
        return prior / np.maximum(prior.sum(1, keepdims=True), 1e-8), value.numpy()

    def search(self, own, stones, rng):
        games, size = len(own), self.args.simulations + 1
        rows = np.arange(games)
        child = np.full((games, size, COLUMNS), -1)
        prior, visits, worth = (np.zeros((games, size, COLUMNS)) for _ in range(3))
        owns, all_stones = np.zeros((2, games, size), dtype=np.int64)
        over, outcome = np.zeros((games, size), dtype=bool), np.zeros((games, size))
        owns[:, 0], all_stones[:, 0] = own, stones
        prior[:, 0], _ = self.evaluate(own, stones)
        noise = rng.dirichlet([1.0] * COLUMNS, games) * open_columns(stones)
        prior[:, 0] = (1 - self.args.noise) * prior[:, 0] + self.args.noise * noise

        for new in range(1, size):
            leaf, depth, path = np.zeros(games, dtype=int), np.zeros(games, dtype=int), []
            walking = rows
            while len(walking):
                node = leaf[walking]
                n = visits[walking, node]
                q = worth[walking, node] / np.maximum(n, 1)
                u = self.args.c_puct * prior[walking, node] * np.sqrt(n.sum(1, keepdims=True) + 1) / (1 + n)
                score = np.where(open_columns(all_stones[walking, node]), q + u, -np.inf)
                column = score.argmax(1)
                path.append((walking, node, column))
                following = child[walking, node, column]
                fresh = following < 0
                if fresh.any():
                    at, parent, move = walking[fresh], node[fresh], column[fresh]
                    child[at, parent, move] = new
                    owns[at, new], all_stones[at, new] = play(owns[at, parent], all_stones[at, parent], move)
                    lost = four(owns[at, new] ^ all_stones[at, new])
                    over[at, new] = lost | (all_stones[at, new] == FULL)
                    outcome[at, new] = np.where(lost, -1.0, 0.0)
                leaf[walking] = np.where(fresh, new, following)
                depth[walking] += 1
                walking = walking[~fresh & ~over[walking, leaf[walking]]]
            prior_leaf, value = self.evaluate(owns[rows, leaf], all_stones[rows, leaf])
            prior[rows, leaf] = prior_leaf
            value = np.where(over[rows, leaf], outcome[rows, leaf], value)
            for d, (at, node, column) in enumerate(path):
                sign = np.where((depth[at] - d) % 2 == 1, -1.0, 1.0)
                visits[at, node, column] += 1
                worth[at, node, column] += sign * value[at]
        return visits[:, 0] / visits[:, 0].sum(1, keepdims=True)


class SelfPlay:
    """Boards go on from one iteration to the next; a finished one starts again."""

    def __init__(self, net, args):
        self.args, self.tree = args, MCTS(net, args)
        self.rng = np.random.default_rng(64)
        self.own, self.stones = np.zeros((2, args.games), dtype=np.int64)
        self.histories = [[] for _ in range(args.games)]

    def run(self):
        examples = []
        for _ in range(self.args.moves):
            policy = self.tree.search(self.own, self.stones, self.rng)
            before = self.own.tolist(), self.stones.tolist()
            for history, *moment in zip(self.histories, *before, policy):
                history.append(moment)
            columns = (policy.cumsum(1) > self.rng.random((len(policy), 1))).argmax(1)
            self.own, self.stones = play(self.own, self.stones, columns)
            won = four(self.own ^ self.stones)
            for game in np.flatnonzero(won | (self.stones == FULL)):
                result = float(won[game])
                for own, stones, policy_then in reversed(self.histories[game]):
                    examples.append((own, stones, policy_then, result))
                    result = -result
                self.histories[game] = []
                self.own[game] = self.stones[game] = 0
        return examples


class Coach:
    def __init__(self, args):
        self.args = args
        self.net = PolicyValueNet()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=args.lr, weight_decay=1e-3, fused=True)
        self.self_play = SelfPlay(self.net, args)
        self.window = deque(maxlen=args.window)

    def learn(self):
        for iteration in range(1, self.args.iterations + 1):
            examples = self.self_play.run()
            self.window.extend(examples)
            losses = self.train_net()
            print(
                f"iteration {iteration}: {len(examples)} positions,"
                f" policy {losses[0]:.3f}, value {losses[1]:.3f}"
            )

    def train_net(self):
        own, stones, policy, result = (np.array(column) for column in zip(*self.window))
        boards, policy = planes(own, stones), torch.from_numpy(policy).float()
        result, total = torch.from_numpy(result).float(), torch.zeros(2)
        self.net.train()
        for _ in range(self.args.train_steps):
            rows = torch.randint(len(boards), (self.args.batch_size,))
            x, p = boards[rows], policy[rows]
            if torch.rand(()) < 0.5:
                x, p = x.flip(3), p.flip(1)
            logits, value = self.net(x)
            losses = F.cross_entropy(logits, p), F.mse_loss(value, result[rows])
            self.optimizer.zero_grad()
            sum(losses).backward()
            self.optimizer.step()
            total += torch.stack(losses).detach()
        return (total / self.args.train_steps).tolist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, value in vars(Args()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    torch.manual_seed(64)
    Coach(Args(**vars(parser.parse_args()))).learn()
