"""Classify bird calls: short recordings become spectrograms as they are read."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def spectrogram(wave, width=128, hop=64):
    window = np.hanning(width)
    frames = [wave[at : at + width] * window for at in range(0, len(wave) - width, hop)]
    return np.log1p(np.abs(np.fft.rfft(np.stack(frames), axis=1))).T.astype(np.float32)


class Calls(Dataset):
    def __init__(self, count, prepared):
        rng = np.random.default_rng(3)
        self.waves = rng.normal(size=(count, 2048))
        self.species = rng.integers(0, 12, size=count)
        self.ready = [spectrogram(wave) for wave in self.waves] if prepared else None

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        picture = self.ready[i] if self.ready is not None else spectrogram(self.waves[i])
        return torch.from_numpy(picture), int(self.species[i])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    loader = DataLoader(Calls(1280, parser.parse_args().fixed), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv1d(65, 96, 5), nn.ReLU(), nn.Conv1d(96, 96, 5), nn.ReLU(), nn.Flatten(), nn.LazyLinear(12)
    )
    model(torch.zeros(1, 65, 30))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(4):
        for picture, species in loader:
            loss = nn.functional.cross_entropy(model(picture), species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
