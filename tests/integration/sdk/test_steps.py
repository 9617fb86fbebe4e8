"""Whole programs under `gpumon run`: as many steps as updates, whatever the style; results as without us."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.model.clock import Moment
from monitor.runs.reader import RunReader
from sdk import ring
from tests.integration.sdk.scripts import HEAD, finish, gpumon, write
from tests.rings import trainer_rings

END = """
total = sum(p.detach().double().sum() for p in parameters).item()
print("result", total.hex(), flush=True)
"""
BY_HAND = (
    HEAD
    + """
torch.manual_seed(1)
parameters = [torch.randn(4, 8, requires_grad=True), torch.zeros(8, requires_grad=True)]
data = torch.randn(256, 4)
for number in range(90):
    x = data[torch.randint(0, 256, (16,))]
    loss = (torch.tanh(x @ parameters[0] + parameters[1]) - 1).square().mean()
    for parameter in parameters:
        parameter.grad = None
    loss.backward()
    for parameter in parameters:
        parameter.data += -0.1 * parameter.grad
"""
    + END
)
LBFGS = (
    HEAD
    + """
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
parameters = list(model.parameters())
optimizer = torch.optim.LBFGS(parameters, max_iter=10)
x = torch.randn(64, 4)
def closure():
    optimizer.zero_grad()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    loss.backward()
    return loss
for _ in range(2):
    optimizer.step(closure)
"""
    + END
)
ACCUMULATED = (
    HEAD
    + """
model, optimizer = net()
parameters = list(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
for epoch in range(3):
    for number, (x, y) in enumerate(DataLoader(Data(96), batch_size=4)):
        scaler.scale(nn.functional.cross_entropy(model(x), y) / 4).backward()
        if number % 4 == 3:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(parameters, 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    model.eval()
    with torch.inference_mode():
        for x, y in DataLoader(Data(16), batch_size=8):
            model(x)
    model.train()
"""
    + END
)
ADVERSARIES = (
    HEAD
    + """
torch.manual_seed(1)
maker, judge = nn.Linear(4, 4), nn.Linear(4, 1)
parameters = [*maker.parameters(), *judge.parameters()]
makers = torch.optim.Adam(maker.parameters(), lr=0.01)
judges = torch.optim.Adam(judge.parameters(), lr=0.01)
for x, _ in DataLoader(Data(160), batch_size=8):
    judges.zero_grad()
    (judge(maker(torch.randn(8, 4)).detach()).mean() - judge(x).mean()).backward()
    judges.step()
    makers.zero_grad()
    (-judge(maker(torch.randn(8, 4))).mean()).backward()
    makers.step()
"""
    + END
)
STYLES = {
    "by hand": (BY_HAND, 90, 1),
    "lbfgs": (LBFGS, 2, 1),
    "accumulated": (ACCUMULATED, 18, 4),
    "adversaries": (ADVERSARIES, 20, 1),
}


@pytest.mark.parametrize("style", STYLES)
def test_as_many_steps_as_updates(gpumon_dir: Path, tmp_path: Path, style: str) -> None:
    text, steps, micro = STYLES[style]
    script = write(tmp_path, text)
    bare = finish(script, gpumon_dir)
    done = finish(script, gpumon_dir, front=gpumon())
    assert (done.stdout, done.returncode) == (bare.stdout, 0), done.stderr
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.head == steps and found.header.state == ring.S_ENDED
    assert {ring.micro_batches(one.flags) for one in found.records} == {micro}


def test_a_look_at_an_update_by_hand_ends(gpumon_dir: Path, tmp_path: Path) -> None:
    """GIVEN a loop whose steps are found late WHEN some of them are sampled THEN the others count."""
    script = write(tmp_path, BY_HAND.replace("range(90)", "range(2000)"))
    done = finish(script, gpumon_dir, front=gpumon())
    assert done.returncode == 0, done.stderr
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.head == 2000
    sampled = sum(bool(one.flags & ring.F_SAMPLED) for one in found.records)
    assert 0 < sampled < len(found.records) / 2


FOLDS = (
    HEAD
    + """
def train(seed):
    torch.manual_seed(seed)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in DataLoader(Data(96), batch_size=8):
        step(model, optimizer, x, y)
for seed in range(3):
    train(seed)
"""
)


def runs_of(directory: Path, run: str) -> list[tuple[str, int]]:
    """What a reader finds when asked for one run."""
    reader = RunReader([directory], run=run)
    now = Moment.now()
    reader.poll(now)
    found = sorted((one.id, one.steps) for one in reader.runs(now, (), ()))
    reader.close()
    return found


def test_several_trainings_in_one_process(gpumon_dir: Path, tmp_path: Path) -> None:
    env = {"GPUMON_RUN_ID": "folds", "GPUMON_AUTO": "1"}
    done = finish(write(tmp_path, FOLDS), gpumon_dir, env=auto(env))
    assert done.returncode == 0, done.stderr
    write_other(gpumon_dir)
    assert runs_of(gpumon_dir, "folds") == [("folds", 12), ("folds-2", 12), ("folds-3", 12)]


def test_several_processes_of_one_command(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, FOLDS.replace("range(3)", "range(1)"))
    for _ in range(2):
        assert (
            finish(script, gpumon_dir, env=auto({"GPUMON_RUN_ID": "twice", "GPUMON_AUTO": "1"})).returncode
            == 0
        )
    assert runs_of(gpumon_dir, "twice") == [("twice", 12), ("twice-2", 12)]


def auto(env: dict[str, str]) -> dict[str, str]:
    """The environment in which `gpumon run` starts a process."""
    from tests.integration.sdk.scripts import ROOT

    return {**env, "PYTHONPATH": f"{ROOT / 'sdk' / 'autostart'}:{ROOT}"}


def write_other(directory: Path) -> None:
    """Somebody else's run whose id begins the same way."""
    source = next(directory.glob("folds.0.ring"))
    (directory / "folds-x.0.ring").write_bytes(source.read_bytes())
    (directory / "foldsmore.0.ring").write_bytes(source.read_bytes())
