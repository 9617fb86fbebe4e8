"""Small training scripts for the tests of knobs and trials."""

from __future__ import annotations

PLAIN = """
import gc, sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.autograd.set_detect_anomaly(True)
    model = nn.Sequential(nn.Linear(20, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(120, 20), torch.randn(120, 1))
    loader = DataLoader(data, batch_size=10, shuffle=True)
    for epoch in range(1000):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            gc.collect()
        torch.save(model.state_dict(), "model.pt")
    print("the end was reached")
"""

RANDOM_SAMPLES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __len__(self):
        return 120
    def __getitem__(self, index):
        return torch.randn(20) + index, torch.ones(1)

if __name__ == "__main__":
    model = nn.Linear(20, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for epoch in range(1000):
        for x, y in DataLoader(Noisy(), batch_size=10):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""

STUBBORN = """
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(120):
            yield torch.randn(20), torch.ones(1)

class Pairs(BatchSampler):
    pass

class Own(torch.optim.SGD):
    pass

if __name__ == "__main__":
    model = nn.Linear(20, 1)
    optimizer = Own(model.parameters(), lr=1e-5)
    for epoch in range(1000):
        for x, y in DataLoader(Stream(), batch_size=10):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""

SLOW_SAMPLES = """
import pathlib, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 400
    def __getitem__(self, index):
        if "--no-workers" in sys.argv and torch.utils.data.get_worker_info() is not None:
            raise RuntimeError("this data set does not like workers")
        time.sleep(0.002)
        return torch.full((4,), float(index % 7)), torch.ones(1)

if __name__ == "__main__":
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1000):
        for x, y in DataLoader(Slow(), batch_size=4, shuffle=True):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pathlib.Path("checkpoint.pt").write_text("overwritten by a trial")
"""

FINITE = """
import gc, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    loss = model(torch.ones(2, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    gc.collect()
print("the end was reached")
"""

SWITCHED = """
import json
import torch
from torch.utils.data import DataLoader, Dataset
from sdk.knobs.catalog import KNOBS
from sdk.knobs.knob import Outcome, Place

class Threads(Dataset):
    def __len__(self):
        return 1
    def __getitem__(self, index):
        return torch.tensor(torch.get_num_threads())

def held(name, text):
    outcome = Outcome("")
    flip = KNOBS[name].apply(Place(torch, lambda: 1), KNOBS[name].read(text), outcome)
    return flip, outcome

def seen():
    group = optimizer.param_groups[0]
    return torch.get_num_threads(), torch.is_anomaly_enabled(), group["fused"], group["foreach"]

if __name__ == "__main__":
    torch.set_num_threads(3)
    knobs = [held("threads.torch", "3"), held("anomaly", "off"), held("optimizer.fused", "on")]
    at_first = [outcome.state for _, outcome in knobs]
    torch.set_num_threads(5)
    torch.autograd.set_detect_anomaly(True)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, foreach=False)
    states = [seen()]
    for on in (False, True, False):
        for flip, _ in knobs:
            flip(on)
        states.append(seen())
        model(torch.ones(2, 4)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    knobs[0][0](True)
    worker = next(iter(DataLoader(Threads(), num_workers=1))).item()
    with torch.autograd.detect_anomaly(check_nan=False):
        knobs[1][0](True)
        inside = torch.is_anomaly_enabled()
    knobs[1][0](False)
    print(json.dumps([at_first, [outcome.state for _, outcome in knobs], states, worker, inside]))
"""
