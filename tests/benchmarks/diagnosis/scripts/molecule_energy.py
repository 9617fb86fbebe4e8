"""Energy of small molecules with a graph isomorphism network, message passing written by hand."""

import argparse
import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Molecule:
    atoms: Tensor
    bonds: Tensor
    energy: float


@dataclass
class GraphBatch:
    atoms: Tensor
    source: Tensor
    target: Tensor
    weight: Tensor
    owner: Tensor
    energy: Tensor
    size: int


class Molecules(Dataset):
    def __init__(self, count, seed=11):
        g = torch.Generator().manual_seed(seed)
        pick = random.Random(seed)
        self.items = [self.make(g, pick) for _ in range(count)]

    @staticmethod
    def make(g, pick):
        n = pick.randint(14, 28)
        pairs = [(i, pick.randrange(i)) for i in range(1, n)]
        pairs += [(pick.randrange(n), pick.randrange(n)) for _ in range(n // 2)]
        bonds = torch.tensor(pairs + [(b, a) for a, b in pairs])
        atoms = torch.randint(9, (n,), generator=g)
        return Molecule(atoms, bonds, float(atoms.float().mean() - len(pairs) / n))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate_graphs(molecules):
    """One big graph out of many small ones."""
    atoms, source, target, owner = [], [], [], []
    degree = {}
    first = 0
    for which, molecule in enumerate(molecules):
        for atom in molecule.atoms.tolist():
            atoms.append(atom)
            owner.append(which)
        for a, b in molecule.bonds.tolist():
            source.append(first + a)
            target.append(first + b)
            degree[first + b] = degree.get(first + b, 0) + 1
        first += len(molecule.atoms)
    weight = [1.0 / math.sqrt(degree.get(a, 1) * degree.get(b, 1)) for a, b in zip(source, target)]
    return GraphBatch(
        torch.tensor(atoms),
        torch.tensor(source),
        torch.tensor(target),
        torch.tensor(weight),
        torch.tensor(owner),
        torch.tensor([m.energy for m in molecules]),
        len(molecules),
    )


def collate_tensors(molecules):
    """The same with one operation for each field."""
    sizes = torch.tensor([len(m.atoms) for m in molecules])
    first = (sizes.cumsum(0) - sizes).repeat_interleave(torch.tensor([len(m.bonds) for m in molecules]))
    bonds = torch.cat([m.bonds for m in molecules]) + first[:, None]
    source, target = bonds.T.contiguous()
    degree = torch.bincount(target, minlength=int(sizes.sum())).clamp(min=1).float()
    weight = (degree[source] * degree[target]).rsqrt()
    return GraphBatch(
        torch.cat([m.atoms for m in molecules]),
        source,
        target,
        weight,
        torch.arange(len(molecules)).repeat_interleave(sizes),
        torch.tensor([m.energy for m in molecules]),
        len(molecules),
    )


class GINLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, batch):
        messages = x.index_select(0, batch.source) * batch.weight[:, None]
        gathered = torch.zeros_like(x).index_add_(0, batch.target, messages)
        return x + self.norm(self.mlp((1 + self.eps) * x + gathered)).relu()


class EnergyNet(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        self.embed = nn.Embedding(9, width)
        self.layers = nn.ModuleList([GINLayer(width) for _ in range(depth)])
        self.readout = nn.Linear(width, 1)

    def forward(self, batch):
        x = self.embed(batch.atoms)
        for layer in self.layers:
            x = layer(x, batch)
        pooled = x.new_zeros(batch.size, x.shape[1]).index_add_(0, batch.owner, x)
        return self.readout(pooled).squeeze(1)


class Trainer:
    def __init__(self, model, optimizer, scheduler, log_every=50):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.log_every = log_every
        self.global_step = 0

    def training_step(self, batch):
        loss = nn.functional.smooth_l1_loss(self.model(batch), batch.energy)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for batch in loader:
                loss = self.training_step(batch)
                self.global_step += 1
                if self.global_step % self.log_every == 0:
                    print(f"[{epoch}] step {self.global_step} mae {loss.item():.4f}")
            self.scheduler.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--molecules", type=int, default=2048)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--fixed", action="store_true", help="batches put together with tensor operations")
    args = parser.parse_args()
    torch.manual_seed(11)
    loader = DataLoader(
        Molecules(args.molecules),
        batch_size=args.batch_size,
        shuffle=True,
        collate_fn=collate_tensors if args.fixed else collate_graphs,
    )
    model = EnergyNet(args.width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    Trainer(model, optimizer, scheduler).fit(loader, args.epochs)


if __name__ == "__main__":
    main()
