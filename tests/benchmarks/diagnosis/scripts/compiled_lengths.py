"""A compiled text encoder fed with batches of many different lengths."""

import argparse
import random

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
fixed = parser.parse_args().fixed


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.mix = nn.Linear(64, 64)
        self.out = nn.Linear(64, 2)

    def forward(self, ids, scale):
        x = self.embed(ids)
        x = torch.tanh(self.mix(x)) * scale
        return self.out(x.mean(1))


torch._dynamo.config.cache_size_limit = 64
model = Encoder()
encode = torch.compile(model, backend="aot_eager", dynamic=False)
optimizer = torch.optim.Adam(model.parameters())
rng = random.Random(0)
for step in range(400):
    length = 64 if fixed else rng.randrange(16, 80)
    ids = torch.randint(0, 1000, (32, length))
    loss = nn.functional.cross_entropy(encode(ids, 1.0), torch.randint(0, 2, (32,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
