"""Will the advertisement be clicked: a DLRM with numbers, categories and their interactions."""

import argparse
import itertools
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class ModelConfig:
    tables: list[int] = field(
        default_factory=lambda: [1000, 400, 60, 2500, 300, 20, 700, 90, 3000, 1200, 45, 800] + [150] * 6
    )
    dim: int = 24
    dense: int = 13
    bottom: tuple[int, ...] = (256, 128)
    top: tuple[int, ...] = (512, 256)
    pairs: str = "one by one"


@dataclass
class Impressions:
    dense: Tensor
    sparse: Tensor
    clicked: Tensor

    def __getitem__(self, index):
        return Impressions(self.dense[index], self.sparse[index], self.clicked[index])

    def __len__(self):
        return len(self.clicked)


def mlp(sizes, last_relu=True):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*(layers if last_relu else layers[:-1]))


class Interaction(nn.Module):
    """The dot product of each pair of vectors."""

    def forward(self, vectors):
        products = []
        for i in range(len(vectors)):
            for j in range(i):
                products.append((vectors[i] * vectors[j]).sum(dim=1, keepdim=True))
        return torch.cat(products, dim=1)


class BatchedInteraction(nn.Module):
    def forward(self, vectors):
        stacked = torch.stack(vectors, dim=1)
        gram = torch.bmm(stacked, stacked.transpose(1, 2))
        rows, columns = torch.tril_indices(len(vectors), len(vectors), offset=-1)
        return gram[:, rows, columns]


class DLRM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embeddings = nn.ModuleList([nn.Embedding(n, cfg.dim) for n in cfg.tables])
        self.bottom = mlp([cfg.dense, *cfg.bottom, cfg.dim])
        self.interaction = BatchedInteraction() if cfg.pairs == "batched" else Interaction()
        n = len(cfg.tables) + 1
        self.top = mlp([cfg.dim + n * (n - 1) // 2, *cfg.top, 1], last_relu=False)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        vectors = [x] + [table(sparse[:, k]) for k, table in enumerate(self.embeddings)]
        return self.top(torch.cat([x, self.interaction(vectors)], dim=1)).squeeze(1)


def synthesize(n, cfg, generator):
    dense = torch.randn(n, cfg.dense, generator=generator)
    sparse = torch.stack([torch.randint(t, (n,), generator=generator) for t in cfg.tables], dim=1)
    chance = torch.sigmoid(dense[:, 0] + (sparse[:, 2] % 3).float() - 2)
    return Impressions(dense, sparse, torch.bernoulli(chance, generator=generator))


class ClickTrainer:
    def __init__(self, model, data, args):
        self.model, self.data, self.args = model, data, args
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
        self.warmup = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min(1.0, (s + 1) / args.warmup)
        )
        self.running = torch.zeros(())

    def train_step(self, batch):
        self.model.train()
        logits = self.model(batch.dense, batch.sparse)
        loss = F.binary_cross_entropy_with_logits(logits, batch.clicked)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.warmup.step()
        self.running.lerp_(loss.detach(), 0.05)

    def train(self):
        step = 0
        while step < self.args.steps:
            for rows in torch.randperm(len(self.data)).split(self.args.batch_size):
                if step == self.args.steps:
                    break
                self.train_step(self.data[rows])
                step += 1
                if step % 50 == 0:
                    print(f"{step}/{self.args.steps} logloss {self.running.item():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=100)
    parser.add_argument("--fixed", action="store_true", help="all pairs in one product of matrices")
    args = parser.parse_args()
    torch.manual_seed(77)
    cfg = ModelConfig(pairs="batched" if args.fixed else "one by one")
    data = synthesize(args.rows, cfg, torch.Generator().manual_seed(78))
    ClickTrainer(DLRM(cfg), data, args).train()
