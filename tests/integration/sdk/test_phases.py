"""Phases of whole programs under `gpumon run`: evaluation of a language model, playing, reads, workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.sdk.scripts import AUTO, HEAD, finish, gpumon, write
from tests.rings import RingFile, trainer_rings

LANGUAGE_MODEL = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(32, 16), nn.Linear(16, 32)
    def forward(self, idx, targets):
        logits = self.head(self.words(idx))
        return nn.functional.cross_entropy(logits.view(-1, 32), targets.view(-1))

data = torch.randint(0, 32, (4000,))
def batch():
    starts = torch.randint(len(data) - 9, (4,)).tolist()
    return (torch.stack([data[i + shift : i + shift + 8] for i in starts]) for shift in (0, 1))

@torch.no_grad()
def estimate_loss():
    model.eval()
    losses = [model(*batch()).item() for _ in range(5)]
    time.sleep(0.02)
    losses += [model(*batch()).item() for _ in range(5)]
    model.train()
    return sum(losses) / 10

model = Model()
optimizer = torch.optim.AdamW(model.parameters())
for number in range(40):
    if number % 10 == 0:
        estimate_loss()
    loss = model(*batch())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
PLAYING = (
    HEAD
    + """
policy = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters())
for _ in range(20):
    states, actions, rewards = [], [], []
    state = torch.zeros(4)
    for _ in range(10):
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=policy(state)).sample()
        states.append(state), actions.append(action), rewards.append(float(action))
        state = torch.randn(4)
        time.sleep(0.001)
    chance = torch.distributions.Categorical(logits=policy(torch.stack(states)))
    loss = -(chance.log_prob(torch.stack(actions)) * torch.tensor(rewards)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
CLOSURES = (
    HEAD
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def forward(self, x):
        time.sleep(0.004)
        return self.layer(x)

model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(Data(160), batch_size=8):
    def closure():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
"""
)


def recorded(directory: Path, folder: Path, text: str) -> RingFile:
    done = finish(write(folder, text), directory, front=gpumon())
    assert done.returncode == 0, done.stderr
    (found,) = trainer_rings(directory)
    return found


@pytest.mark.slow
def test_evaluation_of_a_language_model(gpumon_dir: Path, tmp_path: Path) -> None:
    found = recorded(gpumon_dir, tmp_path, LANGUAGE_MODEL)
    assert found.header.head == 40
    evaluated = [number for number, one in enumerate(found.records) if one.phases.get("validate", 0) >= 0.02]
    assert evaluated == [9, 19, 29], "behind the tenth, twentieth and thirtieth update"
    assert all(one.phases["forward"] > 0 for one in found.records[1:]), "it begins with the first backward"


@pytest.mark.slow
def test_passes_inside_an_optimizers_closure_are_its_own_phases(gpumon_dir: Path, tmp_path: Path) -> None:
    """The way of Lightning: forward and backward run inside `optimizer.step`."""
    found = recorded(gpumon_dir, tmp_path, CLOSURES)
    assert found.header.head == 20
    assert all(one.phases["forward"] >= 0.004 and one.phases["backward"] > 0 for one in found.records[4:])


@pytest.mark.slow
def test_playing_is_named(gpumon_dir: Path, tmp_path: Path) -> None:
    found = recorded(gpumon_dir, tmp_path, PLAYING)
    assert found.header.head == 20
    played = [one.phases.get("rollout", 0) for one in found.records]
    assert sum(seconds >= 0.009 for seconds in played) >= 17, played


READS = (
    HEAD
    + """
class Spy:
    seen = set()
model, optimizer = net()
for x, y in DataLoader(Data(800), batch_size=8):
    loss = step(model, optimizer, x, y)
    Spy.seen.add((id(torch.Tensor.item), sys.getprofile() is None, type(loss.item).__name__))
    sum(value.item() for value in x.flatten())
print(sorted({kind for _, _, kind in Spy.seen}), len({address for address, _, _ in Spy.seen}))
print(sum(1 for _, bare, _ in Spy.seen if bare))
"""
)


@pytest.mark.slow
def test_reads_of_single_values_are_not_wrapped(gpumon_dir: Path, tmp_path: Path) -> None:
    """Hundreds of `.item()` per step call torch's own function, except in the few steps in which calls are
    counted."""
    done = finish(write(tmp_path, READS), gpumon_dir, front=gpumon())
    assert done.stdout.splitlines() == ["['builtin_function_or_method'] 1", "1"], done.stderr


WORKERS = (
    AUTO
    + """
class Told(Data):
    def __getitem__(self, index):
        if index == 0:
            print("modules", len(sys.modules), flush=True)
        return super().__getitem__(index)
model, optimizer = net()
loader = DataLoader(Told(16), batch_size=8, num_workers=1)
for epoch in range(6):
    for x, y in loader:
        step(model, optimizer, x, y)
"""
)


@pytest.mark.slow
def test_a_worker_that_starts_again_imports_nothing(gpumon_dir: Path, tmp_path: Path) -> None:
    """Workers are restarted in every short epoch: what each does at its start is paid for every time."""
    done = finish(write(tmp_path, WORKERS), gpumon_dir, front=gpumon())
    assert done.returncode == 0, done.stderr
    counts = [int(line.split()[1]) for line in done.stdout.splitlines()]
    assert len(counts) == 6 and len(set(counts[2:])) == 1, counts
