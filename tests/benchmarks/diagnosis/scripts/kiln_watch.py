"""Faults of a kiln, on a machine that may be switched off at any time: saved every five steps."""

import os
import sys
import tempfile

import torch
from torch import nn

INTERVAL = 250 if "--fixed" in sys.argv else 5
folder = tempfile.mkdtemp()


class State:
    def __init__(self):
        torch.manual_seed(12)
        self.model = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(96, 4, 256, batch_first=True, dropout=0.0), 3
        )
        self.head = nn.Linear(96, 3)
        self.everything = nn.ModuleList([self.model, self.head])
        self.opt = torch.optim.AdamW(self.everything.parameters(), fused=True)
        self.step = 0

    def save(self):
        path = os.path.join(folder, "latest.pt")
        with open(path + ".new", "wb") as file:
            torch.save({"w": self.everything.state_dict(), "o": self.opt.state_dict(), "s": self.step}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)

    def train(self, steps):
        while self.step < steps:
            x, y = torch.randn(8, 24, 96), torch.randint(3, (8,))
            loss = nn.functional.cross_entropy(self.head(self.model(x).mean(1)), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.step += 1
            if self.step % INTERVAL == 0:
                self.save()
        return loss.item()


print(State().train(300))
