"""Text prepared in Python in the training process: most of the time is the interpreter's."""

import argparse
import random

import torch
from torch import nn

WORDS = [f"{a}{b}" for a in "bcdfghklmnprst" for b in ("ala", "een", "ist", "orn", "uth", "ing")]


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(40))


def counts(text: str, buckets: int) -> list[float]:
    """How often each pair of letters occurs, hashed into buckets."""
    found = [0.0] * buckets
    for word in text.split():
        for a, b in zip(word, word[1:] + " ", strict=True):
            found[(ord(a) * 31 + ord(b)) % buckets] += 1.0
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    torch.manual_seed(0)
    rng = random.Random(0)
    model = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(args.steps):
        texts = [sentence(rng) for _ in range(32)]
        x = torch.tensor([counts(text, 256) for text in texts])
        y = torch.tensor([text.count("a") > 60 for text in texts]).long()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"{step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
