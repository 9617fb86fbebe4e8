"""Person re-identification: P identities x K pictures per batch, triplet-style loss."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Pictures(Dataset):
    def __init__(self, identities=60, each=25):
        self.features = torch.randn(identities * each, 256)
        self.meta = [
            {"identity": i // each, "camera": f"c{i % 6}", "rgb": i % 3 != 0}
            for i in range(identities * each)
        ]

    def __len__(self):
        return len(self.meta)

    def __getitem__(self, i):
        return self.features[i], self.meta[i]["identity"]


class IdentitySampler(Sampler):
    """Batches of P identities with K pictures each, at least one of them in colour."""

    def __init__(self, data, p, k, batches):
        self.data, self.p, self.k, self.batches = data, p, k, batches

    def __len__(self):
        return self.batches

    def _pictures_of(self, identity):
        return [i for i, entry in enumerate(self.data.meta) if entry["identity"] == identity]

    def __iter__(self):
        for _ in range(self.batches):
            batch = []
            for identity in random.sample(range(60), self.p):
                candidates = self._pictures_of(identity)
                colour = [i for i in candidates if self.data.meta[i]["rgb"]]
                batch += [random.choice(colour)] + random.sample(candidates, self.k - 1)
            yield batch


class CachedIdentitySampler(IdentitySampler):
    def __init__(self, data, p, k, batches):
        super().__init__(data, p, k, batches)
        self.index = {
            identity: super(CachedIdentitySampler, self)._pictures_of(identity) for identity in range(60)
        }

    def _pictures_of(self, identity):
        return self.index[identity]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    data = Pictures()
    sampler = (CachedIdentitySampler if args.fixed else IdentitySampler)(data, 8, 4, 150)
    loader = DataLoader(data, batch_sampler=sampler)
    encoder = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 128))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
    for epoch in range(8):
        for features, identity in loader:
            embedded = nn.functional.normalize(encoder(features))
            similarity = embedded @ embedded.T
            same = identity[:, None] == identity[None, :]
            loss = (similarity[~same].mean() - similarity[same].mean()).exp()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, float(loss))


if __name__ == "__main__":
    main()
