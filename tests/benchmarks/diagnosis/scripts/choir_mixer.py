"""Voices of a choir, mixed one singer after the other."""

import sys

import torch
from torch import nn

together = "--fixed" in sys.argv


class Mixer(nn.Module):
    def __init__(self, singers=48, wide=64):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(singers, wide))
        self.tone = nn.Parameter(torch.zeros(singers, wide))
        self.out = nn.Linear(wide, 8)

    def forward(self, voices):
        if together:
            mixed = torch.tanh(voices * self.gain + self.tone).sum(1)
        else:
            mixed = torch.zeros(voices.shape[0], voices.shape[2])
            for singer in range(voices.shape[1]):
                mixed = mixed + torch.tanh(voices[:, singer] * self.gain[singer] + self.tone[singer])
        return self.out(mixed)


model = Mixer()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(400):
    voices, part = torch.randn(16, 48, 64), torch.randint(0, 8, (16,))
    loss = nn.functional.cross_entropy(model(voices), part)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
