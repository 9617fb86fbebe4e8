"""Species by wing beat. Scores on the whole validation set every tenth step."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

OFTEN = 300 if "--fixed" in sys.argv else 10


class Wings(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.GRU(8, 64, batch_first=True)
        self.tail = nn.Linear(64, 7)

    def forward(self, t):
        return self.tail(self.body(t)[0][:, -1])


class Session:
    def __init__(self):
        torch.manual_seed(5)
        self.net = Wings()
        self.opt = torch.optim.Adam(self.net.parameters(), fused=True)
        self.train_x, self.train_y = torch.randn(4000, 32, 8), torch.randint(0, 7, (4000,))
        self.dev_x, self.dev_y = torch.randn(600, 32, 8), torch.randint(0, 7, (600,))
        self.best = 0.0

    @torch.no_grad()
    def check(self):
        self.net.eval()
        right = sum(
            (self.net(x).argmax(1) == y).sum().item()
            for x, y in zip(self.dev_x.split(100), self.dev_y.split(100))
        )
        self.net.train()
        self.best = max(self.best, right / 600)

    def fit(self, steps):
        at = 0
        while at < steps:
            pick = torch.randint(0, 4000, (64,))
            loss = F.cross_entropy(self.net(self.train_x[pick]), self.train_y[pick])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            at += 1
            if at % OFTEN == 0:
                self.check()


session = Session()
session.fit(300)
print(session.best)
