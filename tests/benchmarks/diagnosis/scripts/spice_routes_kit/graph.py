"""Triples, and the datasets that spoil one end of them."""

import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def make_triples(options):
    """Entities live in harbours; a relation leads from one harbour mostly to one other."""
    rng = np.random.default_rng(options.seed)
    harbour = rng.integers(60, size=options.entities)
    by_harbour = [np.flatnonzero(harbour == one) for one in range(60)]
    leads = rng.integers(60, size=(options.relations, 60))
    head = rng.integers(options.entities, size=options.triples)
    relation = rng.integers(options.relations, size=options.triples)
    pick = rng.random(options.triples)
    tail = [by_harbour[leads[r, harbour[h]]] for h, r in zip(head, relation)]
    tail = np.array([some[int(p * len(some))] if len(some) else 0 for some, p in zip(tail, pick)])
    triples = np.unique(np.stack([head, relation, tail], 1), axis=0)
    return rng.permutation(triples)


class CorruptedTriples(Dataset):
    """A true triple, entities that would make it false at one end, and a weight against frequent pairs."""

    def __init__(self, triples, options, mode):
        self.entities, self.negatives, self.mode = options.entities, options.negatives, mode
        self.triples = [tuple(one) for one in triples.tolist()]
        self.known = set(self.triples)
        self.rng = random.Random(options.seed)
        self.weights = subsampling(triples, options)

    def __len__(self):
        return len(self.triples)

    def __getitem__(self, index):
        head, relation, tail = self.triples[index]
        negatives = []
        while len(negatives) < self.negatives:
            entity = self.rng.randrange(self.entities)
            if self.mode == "tail":
                candidate = (head, relation, entity)
            else:
                candidate = (entity, relation, tail)
            if candidate not in self.known:
                negatives.append(entity)
        return torch.tensor((head, relation, tail)), torch.tensor(negatives), self.weights[index]

    @staticmethod
    def collate(samples):
        positive, negatives, weight = zip(*samples)
        return torch.stack(positive), torch.stack(negatives), torch.stack(weight)


class CorruptedBatches(Dataset):
    """The same for the rows of a batch together."""

    def __init__(self, triples, options, mode):
        self.options, self.triples = options, triples
        self.column = 2 if mode == "tail" else 0
        self.known = np.sort(self._keys(triples))
        self.rng = np.random.default_rng(options.seed)
        self.weights = subsampling(triples, options)

    def _keys(self, triples):
        return (triples[..., 0] * self.options.relations + triples[..., 1]) * self.options.entities + triples[
            ..., 2
        ]

    def __len__(self):
        return len(self.triples)

    def __getitems__(self, indices):
        positive = self.triples[indices]
        spoiled = np.repeat(positive[:, None], self.options.negatives, 1)
        wrong = np.ones(spoiled.shape[:2], dtype=bool)
        while wrong.any():
            spoiled[wrong, self.column] = self.rng.integers(self.options.entities, size=int(wrong.sum()))
            keys = self._keys(spoiled)
            place = np.searchsorted(self.known, keys).clip(max=len(self.known) - 1)
            wrong = self.known[place] == keys
        negatives = np.ascontiguousarray(spoiled[..., self.column])
        return torch.from_numpy(positive), torch.from_numpy(negatives), self.weights[indices]

    @staticmethod
    def collate(batch):
        return batch


def subsampling(triples, options):
    pairs = triples[:, 0] * options.relations + triples[:, 1]
    _, place, count = np.unique(pairs, return_inverse=True, return_counts=True)
    return torch.from_numpy(1 / np.sqrt(count[place.reshape(-1)] + 3)).float()


def alternating(triples, options):
    """Batches with spoiled heads and with spoiled tails in turn, without an end."""
    kind = CorruptedBatches if options.fixed else CorruptedTriples
    streams = []
    for mode in ("head", "tail"):
        loader = DataLoader(
            kind(triples, options, mode),
            options.batch_size,
            shuffle=True,
            drop_last=True,
            collate_fn=kind.collate,
        )
        streams.append(endless(loader))
    while True:
        yield "head", next(streams[0])
        yield "tail", next(streams[1])


def endless(loader):
    while True:
        yield from loader
