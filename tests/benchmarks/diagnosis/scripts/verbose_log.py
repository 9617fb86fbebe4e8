"""Multi-output regression with a detailed journal."""

import argparse
import json
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Journal:
    def __init__(self, path):
        self.path = path
        self.entries = []

    def note(self, step, model, loss):
        entry = {"step": step, "time": time.time(), "loss": loss}
        for name, parameter in model.named_parameters():
            entry[name] = {"mean": parameter.mean().item(), "std": parameter.std().item()}
        self.entries.append(entry)
        with open(self.path, "a") as out:
            out.write(json.dumps(entry, indent=1) + "\n")
        print(f"[{time.strftime('%H:%M:%S')}] step {step} loss {loss:.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    every = 100 if parser.parse_args().fixed else 1
    model = nn.Sequential(
        nn.Linear(40, 96), nn.Tanh(), *[nn.Linear(96, 96) for _ in range(6)], nn.Tanh(), nn.Linear(96, 8)
    )
    data = TensorDataset(torch.randn(12800, 40), torch.randn(12800, 8))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    journal = Journal(tempfile.mktemp(suffix=".jsonl"))
    step = 0
    for epoch in range(3):
        for x, y in DataLoader(data, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.l1_loss(model(x), y)
            loss.backward()
            optimizer.step()
            if step % every == 0:
                journal.note(step, model, loss.item())
            step += 1


if __name__ == "__main__":
    main()
