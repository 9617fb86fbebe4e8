"""Language model over characters that must survive being preempted."""

import argparse
import os
import tempfile

import torch
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog and runs away " * 400


def get_batch(ids, size, length):
    starts = torch.randint(0, len(ids) - length - 1, (size,))
    x = torch.stack([ids[s : s + length] for s in starts])
    y = torch.stack([ids[s + 1 : s + length + 1] for s in starts])
    return x, y


class CharModel(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 256)
        self.rnn = nn.GRU(256, 384, batch_first=True)
        self.out = nn.Linear(384, vocabulary)

    def forward(self, x):
        hidden, _ = self.rnn(self.embed(x))
        return self.out(hidden)


parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
every = 100 if parser.parse_args().fixed else 1

letters = sorted(set(TEXT))
ids = torch.tensor([letters.index(c) for c in TEXT])
model = CharModel(len(letters))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
folder = tempfile.mkdtemp()
for step in range(160):
    x, y = get_batch(ids, 8, 16)
    logits = model(x)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % every == 0:
        path = os.path.join(folder, "last.pt")
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        with open(path, "rb+") as handle:
            os.fsync(handle.fileno())
print("loss", loss.item())
