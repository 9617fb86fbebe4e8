"""Fine-tuning on documents with accumulation, every block checkpointed 'to save memory'."""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
parser.add_argument("--accumulate", type=int, default=2)
cfg = parser.parse_args()
torch.manual_seed(77)


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Reader(nn.Module):
    def __init__(self, d=256, depth=6):
        super().__init__()
        self.embed = nn.Embedding(1000, d)
        self.layers = nn.ModuleList(Layer(d) for _ in range(depth))
        self.out = nn.Linear(d, 4)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x) if cfg.fixed else checkpoint(layer, x, use_reentrant=False)
        return self.out(x.mean(1))


model = Reader().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
documents = torch.randint(0, 1000, (512, 256), device="cuda")
topics = torch.randint(4, (512,), device="cuda")
for step in range(170):
    for micro in range(cfg.accumulate):
        pick = torch.randint(0, 512, (8,), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(documents[pick]), topics[pick]) / cfg.accumulate
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 40 == 0:
        print("step", step, "loss", loss.item() * cfg.accumulate)
