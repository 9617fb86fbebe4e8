"""Speaker identification with an early-stopping check every 25 steps."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SpeakerNet(nn.Module):
    def __init__(self, speakers=30):
        super().__init__()
        self.conv = nn.Conv1d(40, 128, 5, padding=2)
        self.rnn = nn.GRU(128, 96, batch_first=True)
        self.out = nn.Linear(96, speakers)

    def forward(self, frames):
        x = torch.relu(self.conv(frames)).transpose(1, 2)
        return self.out(self.rnn(x)[0][:, -1])


def evaluate(model, loader):
    model.eval()
    losses = []
    with torch.no_grad():
        for frames, speaker in loader:
            losses.append(F.cross_entropy(model(frames), speaker))
    model.train()
    return torch.stack(losses).mean().item()


def make(count):
    return TensorDataset(torch.randn(count, 40, 60), torch.randint(0, 30, (count,)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    check_every = 300 if parser.parse_args().fixed else 25
    train, held = DataLoader(make(2400), batch_size=24, shuffle=True), DataLoader(make(720), batch_size=48)
    model = SpeakerNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    step, best = 0, float("inf")
    for epoch in range(3):
        for frames, speaker in train:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(frames), speaker)
            loss.backward()
            optimizer.step()
            step += 1
            if step % check_every == 0:
                best = min(best, evaluate(model, held))
    print("best", best)


if __name__ == "__main__":
    main()
