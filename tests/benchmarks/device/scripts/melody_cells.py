"""Melodies, note by note through an LSTM cell."""

import sys

import torch
import torch.nn as nn

NOTES, HIDDEN, LENGTH = 48, 40, 40
torch.manual_seed(12)


class ByHand(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(NOTES, HIDDEN)
        self.cell = nn.LSTMCell(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, NOTES)

    def forward(self, notes):
        h = torch.zeros(notes.shape[0], HIDDEN, device=notes.device)
        c = torch.zeros_like(h)
        logits = []
        for t in range(notes.shape[1]):
            h, c = self.cell(self.embed(notes[:, t]), (h, c))
            logits.append(self.out(h))
        return torch.stack(logits, 1)


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(NOTES, HIDDEN)
        self.rnn = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, NOTES)

    def forward(self, notes):
        return self.out(self.rnn(self.embed(notes))[0])


model = Fused() if "--fixed" in sys.argv else ByHand()
model.cuda()
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
songs = torch.randint(0, NOTES, (256, LENGTH + 1), device="cuda")
for step in range(130):
    batch = songs[torch.randint(0, 256, (12,), device="cuda")]
    logits = model(batch[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, NOTES), batch[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
print("loss", loss.item())
