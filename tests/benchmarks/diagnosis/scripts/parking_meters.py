"""How long will a car stay: records of parking meters in a small database, wide-and-deep on them."""

import argparse
import json
import os
import sqlite3
import tempfile

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

HISTORY = 24


def fill(path, n, rng):
    """As the collecting service writes it: a row for each stay, its history as JSON."""
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE stay (id INTEGER PRIMARY KEY, zone INTEGER, hour INTEGER, history TEXT, minutes REAL)"
    )
    for i in range(n):
        zone, hour = int(rng.integers(40)), int(rng.integers(24))
        history = [{"free": round(float(v), 4), "paid": bool(v > 0)} for v in rng.normal(size=HISTORY)]
        minutes = 30 + 2 * zone + 10 * np.sin(hour) + 5 * sum(one["free"] for one in history[:6])
        connection.execute(
            "INSERT INTO stay VALUES (?, ?, ?, ?, ?)", (i, zone, hour, json.dumps(history), minutes)
        )
    connection.commit()
    return connection


class Stays(Dataset):
    def __init__(self, connection, n):
        self.connection, self.n = connection, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        query = "SELECT zone, hour, history, minutes FROM stay WHERE id = ?"
        zone, hour, history, minutes = self.connection.execute(query, (i,)).fetchone()
        readings = [[one["free"], float(one["paid"])] for one in json.loads(history)]
        numbers = torch.tensor(readings).flatten()
        return {"zone": zone, "hour": hour, "numbers": numbers, "minutes": minutes / 60}


class InMemory(Dataset):
    """Everything is read when the data set is made."""

    def __init__(self, stays):
        self.rows = [stays[i] for i in range(len(stays))]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class WideAndDeep(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.zone, self.hour = nn.Embedding(40, 16), nn.Embedding(24, 16)
        self.wide = nn.Linear(2 * HISTORY, 1)
        self.deep = nn.Sequential(
            nn.Linear(32 + 2 * HISTORY, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 1),
        )

    def forward(self, zone, hour, numbers):
        both = torch.cat([self.zone(zone), self.hour(hour), numbers], dim=1)
        return (self.wide(numbers) + self.deep(both)).squeeze(1)


class Engine:
    def __init__(self, model, args):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=True)
        self.handlers = {"epoch_end": []}
        self.state = {"epoch": 0, "loss": torch.zeros(())}

    def on(self, event):
        def register(function):
            self.handlers[event].append(function)
            return function

        return register

    def fire(self, event):
        for handler in self.handlers[event]:
            handler(self.state)

    def update(self, batch):
        predicted = self.model(batch["zone"], batch["hour"], batch["numbers"])
        loss = F.smooth_l1_loss(predicted, batch["minutes"].float())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.state["loss"] = loss.detach()

    def run(self, loader, epochs):
        for self.state["epoch"] in range(epochs):
            for batch in loader:
                self.update(batch)
            self.fire("epoch_end")


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=9)
    cli.add_argument("--stays", type=int, default=3072)
    cli.add_argument("--batch-size", type=int, default=64)
    cli.add_argument("--width", type=int, default=768)
    cli.add_argument("--lr", type=float, default=1e-3)
    cli.add_argument("--fixed", action="store_true", help="read the database once")
    args = cli.parse_args()
    torch.manual_seed(12)
    with tempfile.TemporaryDirectory() as folder:
        connection = fill(os.path.join(folder, "stays.db"), args.stays, np.random.default_rng(12))
        stays = Stays(connection, args.stays)
        loader = DataLoader(
            InMemory(stays) if args.fixed else stays, batch_size=args.batch_size, shuffle=True, drop_last=True
        )
        engine = Engine(WideAndDeep(args.width), args)

        @engine.on("epoch_end")
        def report(state):
            print(f"epoch {state['epoch']}: {state['loss'].item():.4f}")

        engine.run(loader, args.epochs)
        connection.close()


if __name__ == "__main__":
    main()
