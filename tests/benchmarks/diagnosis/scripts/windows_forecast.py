"""Forecast a simulated sensor from sliding windows with a small temporal CNN."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class StandardScaler:
    def fit(self, rows):
        self.mean_ = rows.mean(axis=0)
        self.scale_ = rows.std(axis=0)
        return self

    def transform(self, rows):
        rows = np.asarray(rows, dtype=np.float64)
        out = np.empty_like(rows)
        for column in range(rows.shape[1]):
            out[:, column] = (rows[:, column] - self.mean_[column]) / self.scale_[column]
        return out


class SensorWindows(Dataset):
    def __init__(self, series, seq_len, normalise_once):
        self.series, self.seq_len = series, seq_len
        self.scaler = StandardScaler().fit(series)
        self.ready = (
            torch.tensor(self.scaler.transform(series), dtype=torch.float32) if normalise_once else None
        )

    def __len__(self):
        return len(self.series) - self.seq_len - 1

    def __getitem__(self, start):
        if self.ready is not None:
            window = self.ready[start : start + self.seq_len + 1]
        else:
            raw = self.series[start : start + self.seq_len + 1]
            window = torch.tensor(self.scaler.transform(raw), dtype=torch.float32)
        return window[:-1], window[-1]


class TCN(nn.Module):
    def __init__(self, channels, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(channels, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, channels)

    def forward(self, x):
        return self.head(self.body(x.transpose(1, 2)).mean(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    steps = np.arange(6000)[:, None]
    series = np.sin(steps * np.linspace(0.01, 0.2, 12)) + 0.1 * np.random.default_rng(0).normal(
        size=(6000, 12)
    )
    loader = DataLoader(SensorWindows(series, 48, args.fixed), batch_size=64, shuffle=True, drop_last=True)
    model = TCN(12)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
