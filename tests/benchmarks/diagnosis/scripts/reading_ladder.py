"""Reading levels with a curriculum: easy texts first, harder ones as competence grows."""

import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn


class Curriculum:
    """Competence grows with the square root of the steps; a batch is drawn from what it covers."""

    def __init__(self, difficulty, total, start=0.1, ranked=False):
        self.difficulty, self.total, self.start = difficulty, total, start
        self.order = sorted(range(len(difficulty)), key=difficulty.__getitem__) if ranked else None

    def competence(self, step):
        return min(1.0, math.sqrt(step * (1 - self.start**2) / self.total + self.start**2))

    def allowed(self, step):
        limit = self.competence(step)
        if self.order is not None:
            return self.order[: max(1, int(limit * len(self.order)))]
        return [i for i, level in enumerate(self.difficulty) if level <= limit]


def curriculum_batches(curriculum, texts, levels, batch_size, steps):
    for step in range(steps):
        pool = curriculum.allowed(step)
        rows = torch.tensor(random.choices(pool, k=batch_size))
        yield step, texts[rows], levels[rows]


class LevelNet(nn.Module):
    def __init__(self, vocab, dim, hidden, levels):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, hidden), nn.GELU()
        )
        self.head = nn.Linear(hidden, levels - 1)

    def forward(self, tokens):
        return self.head(self.mlp(self.bag(tokens)))


def ordinal_loss(logits, levels):
    """One yes or no for each threshold."""
    above = (levels[:, None] > torch.arange(logits.shape[1])).float()
    return F.binary_cross_entropy_with_logits(logits, above)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=500)
    ap.add_argument("--texts", type=int, default=60_000)
    ap.add_argument("--batch-size", type=int, default=128)
    ap.add_argument("--tokens", type=int, default=40)
    ap.add_argument("--vocab", type=int, default=3000)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--fixed", action="store_true", help="rank the texts once")
    args = ap.parse_args()
    torch.manual_seed(25)
    random.seed(25)
    texts = torch.randint(args.vocab, (args.texts, args.tokens))
    rarity = (texts.float() / args.vocab).mean(1)
    difficulty = (rarity.argsort().argsort().float() / args.texts).tolist()
    levels = (rarity * 24).long().clamp(9, 14) - 9
    curriculum = Curriculum(difficulty, args.steps, ranked=args.fixed)
    model = LevelNet(args.vocab, 96, 384, 6)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    for step, x, y in curriculum_batches(curriculum, texts, levels, args.batch_size, args.steps):
        loss = ordinal_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step}: competence {curriculum.competence(step):.2f} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
