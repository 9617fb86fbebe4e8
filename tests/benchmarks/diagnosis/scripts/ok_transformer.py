"""Character transformer, trained by iterations."""

import argparse
import math

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, vocabulary, width=96, heads=4, layers=2, context=48):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(context, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.token(ids) + self.position[: ids.shape[1]]
        return self.out(self.blocks(x, mask=mask, is_causal=True))


def learning_rate(step, warmup=20, total=150):
    return (
        step / warmup if step < warmup else 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=150)
    iterations = parser.parse_args().iterations
    data = torch.randint(0, 64, (50_000,))
    windows = data.unfold(0, 49, 1)
    model = Decoder(64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    for step in range(iterations):
        for group in optimizer.param_groups:
            group["lr"] = 3e-4 * learning_rate(step)
        block = windows[torch.randint(0, len(windows), (16,))]
        logits = model(block[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), block[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())
