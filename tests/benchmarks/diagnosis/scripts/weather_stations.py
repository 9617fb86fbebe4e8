"""Regress temperature from station reports that are stored as text lines."""

import argparse
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def make_lines(count):
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(count, 96, generator=generator)
    return [
        json.dumps({"station": i, "report": row.tolist(), "target": float(row.sum())})
        for i, row in enumerate(values)
    ]


class Stations(Dataset):
    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        entry = json.loads(self.lines[index])
        report = torch.tensor(entry["report"])
        smoothed = report.clone()
        for hour in range(1, len(report) - 1):
            smoothed[hour] = (report[hour - 1] + report[hour] + report[hour + 1]) / 3
        return smoothed, entry["target"]


class ParsedStations(Dataset):
    def __init__(self, lines):
        raw = Stations(lines)
        self.items = [raw[i] for i in range(len(lines))]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    lines = make_lines(1200)
    data = ParsedStations(lines) if parser.parse_args().fixed else Stations(lines)
    loader = DataLoader(data, batch_size=24, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(nn.Linear(96, 256), nn.Tanh(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(6):
        for report, target in loader:
            prediction = model(report).squeeze(-1)
            loss = ((prediction - target.float()) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
