"""New names for streets, letter by letter: a causal transformer in a few functions, with made-up names to look at."""

import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

FIRST = "oak elm birch mill church king queen station garden river hill green long short old new north west".split()
LAST = "street road lane avenue way close court drive gardens crescent place square walk terrace row".split()
END = 0


def names(count, rng):
    for _ in range(count):
        middle = rng.choice(FIRST) if rng.random() < 0.4 else ""
        near = f"near {rng.choice(FIRST)} {rng.choice(LAST)}"
        yield " ".join(filter(None, [rng.choice(FIRST), middle, rng.choice(LAST), near]))


def to_tensor(texts, letters, length):
    table = {letter: number for number, letter in enumerate(letters, 1)}
    rows = torch.full((len(texts), length + 1), END)
    for row, text in zip(rows, texts):
        row[1 : len(text) + 1] = torch.tensor([table[letter] for letter in text])
    return rows


class Namer(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.letters = nn.Embedding(vocabulary, width)
        self.places = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, vocabulary)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, rows):
        n = rows.shape[1]
        x = self.letters(rows) + self.places[:n]
        return self.out(self.layers(x, mask=self.mask[:n, :n], is_causal=True))


@torch.no_grad()
def invent(model, letters, count, length, temperature=0.8):
    """Some new names; the model reads all that is written so far for every letter."""
    model.eval()
    rows = torch.full((count, 1), END)
    while rows.shape[1] < length:
        scores = model(rows)[:, -1] / temperature
        rows = torch.cat([rows, torch.multinomial(scores.softmax(-1), 1)], 1)
    model.train()
    texts = ("".join("\n" if n == END else letters[n - 1] for n in row) for row in rows[:, 1:].tolist())
    return [text.split("\n")[0] for text in texts]


def rate(step, steps, peak):
    warm = min(1.0, step / 50)
    return peak * warm * (0.1 + 0.45 * (1 + math.cos(math.pi * step / steps)))


def main(args):
    rng = random.Random(args.seed)
    torch.manual_seed(args.seed)
    texts = sorted(set(names(4000, rng)))
    letters = sorted(set("".join(texts)))
    length = max(map(len, texts)) + 1
    data = to_tensor(texts, letters, length)
    model = Namer(len(letters) + 1, length, args.width, 4, args.layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.99), fused=True)
    for step in range(1, args.steps + 1):
        batch = data[torch.randint(len(data), (args.batch_size,))]
        optimizer.param_groups[0]["lr"] = rate(step, args.steps, args.lr)
        scores = model(batch[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % args.sample_every == 0:
            print(f"{step:5}  {loss.item():.3f}  {', '.join(invent(model, letters, 6, length))}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=700)
    cli.add_argument("--batch-size", type=int, default=16)
    cli.add_argument("--width", type=int, default=64)
    cli.add_argument("--layers", type=int, default=3)
    cli.add_argument("--lr", type=float, default=1e-3)
    cli.add_argument("--sample-every", type=int, default=10)
    cli.add_argument("--seed", type=int, default=8)
    cli.add_argument("--fixed", action="store_true", help="look at names every 250 steps")
    args = cli.parse_args()
    if args.fixed:
        args.sample_every = 250
    main(args)
