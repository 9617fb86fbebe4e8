"""Each kind of instrumentation with `torch.compile(fullgraph=True)`: no added graph break, identical bits."""

from __future__ import annotations

from pathlib import Path

import pytest

from sdk import ring
from tests.integration.sdk.scripts import HEAD, finish, gpumon, write
from tests.rings import trainer_rings

SCRIPT = (
    HEAD
    + """
import contextlib
from sdk import TrainingMonitor
kind = sys.argv[1]
monitor = TrainingMonitor.auto() if kind == "auto" else None
if kind in ("phase", "lap"):
    monitor = TrainingMonitor("c")
if monitor and kind != "auto":
    monitor.start_monitoring()
model, optimizer = net()

def loss(x, y):
    if kind == "phase":
        with monitor.phase("forward"):
            out = model(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = out * 1
        return nn.functional.cross_entropy(out.float(), y)
    if kind == "lap":
        monitor.lap("forward")
        out = model(x)
        monitor.lap("sync")
        monitor.step()
    else:
        out = model(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = out * 1
    return nn.functional.cross_entropy(out.float(), y)

compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
loader = DataLoader(Data(), batch_size=8)
batches = monitor.loader(loader) if monitor and kind != "auto" else loader
for _ in range(4):
    for x, y in batches:
        optimizer.zero_grad()
        compiled(x, y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if monitor and kind != "auto":
            monitor.step()
if monitor:
    monitor.stop_monitoring()
from torch._dynamo.utils import counters
from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER as frames
total = sum(p.detach().double().sum() for p in model.parameters()).item()
breaks = sum(counters["graph_break"].values())
print(counters["stats"]["unique_graphs"], breaks, sum(frames.values()), total.hex())
"""
)


@pytest.mark.slow
def test_no_added_graph_breaks_and_equal_bits(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, SCRIPT)
    plain = finish(script, gpumon_dir, "plain")
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout.startswith("1 0 1 ")
    for kind, front in (("phase", ()), ("lap", ()), ("auto", ()), ("plain", gpumon())):
        done = finish(script, gpumon_dir, kind, front=front)
        assert (done.stdout, done.returncode) == (plain.stdout, 0), f"{kind}: {done.stderr}"
    rings = trainer_rings(gpumon_dir)
    assert len(rings) == 4
    for found in rings:
        assert found.header.head == 32
        assert found.records[0].flags & ring.F_COMPILED and found.records[0].flags & ring.F_WARMUP
        assert found.config["compile"]["used"] is True and found.config["compile"]["graph_breaks"] == 0
        autocast = found.config["precision"].get("autocast")
        assert autocast is not False, "it is on in there, and compiled code does not tell that it is off"


MODELS = (
    HEAD
    + """
kind = sys.argv[1]

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(6))
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.head(x)

torch.manual_seed(1)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
how = dict(fullgraph=True, backend="aot_eager")

def epoch(called):
    for x, y in DataLoader(Data(), batch_size=8):
        step(called, optimizer, x, y)
    with torch.no_grad():
        for _ in range(3):
            called(torch.ones(8, 4))

if kind == "module":
    called = torch.compile(model, **how)
    epoch(called)
elif kind == "in_place":
    model.compile(**how)
    called = model
    epoch(called)
elif kind == "later":  # it was trained, and so watched, before it is compiled
    epoch(model)
    called = torch.compile(model, **how)
    epoch(called)
elif kind == "function":
    epoch(model)
    compiled = torch.compile(lambda x: model(x), **how)
    called = lambda x: compiled(x)
    epoch(called)
elif kind == "both":  # the compiled one trains, the plain one evaluates
    called = torch.compile(model, **how)
    epoch(called)
    with torch.no_grad():
        model(torch.ones(8, 4))
epoch(called)
epoch(called)
from torch._dynamo.utils import counters
from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER as frames
total = sum(p.detach().double().sum() for p in model.parameters()).item()
breaks = sum(counters["graph_break"].values())
print(counters["stats"]["unique_graphs"], breaks, sum(frames.values()), total.hex())
"""
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["module", "in_place", "later", "function", "both"])
def test_a_watched_model_is_compiled_as_it_would_be(gpumon_dir: Path, tmp_path: Path, kind: str) -> None:
    script = write(tmp_path, MODELS)
    plain = finish(script, gpumon_dir, kind)
    assert plain.returncode == 0, plain.stderr
    done = finish(script, gpumon_dir, kind, front=gpumon())
    assert (done.stdout, done.returncode) == (plain.stdout, 0), done.stderr
    (found,) = trainer_rings(gpumon_dir)
    assert found.header.head in (24, 32)
    assert all(one.phases["forward"] > 0 for one in found.records[4:])
    if kind != "function":
        assert found.records[-1].phases["validate"] > 0


PROFILED = (
    HEAD
    + """
import threading
from sdk.sampling.step_profile import StepProfile
from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER as frames

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
    def forward(self, x):
        return self.layer(x)

model, x = Model(), torch.ones(8, 4)
compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
compiled(x)
before = sum(frames.values())
for calls in range(64):  # the profile times one event in 64: each of those inside is it once
    profile = StepProfile()
    assert profile.start(threading.get_ident(), 10**9)
    for _ in range(calls):
        len("")
    compiled(x)
    assert profile.on and profile.calls()
    profile.stop()
print(sum(frames.values()) - before)
"""
)


@pytest.mark.slow
def test_the_compiler_never_meets_the_profile_function(gpumon_dir: Path, tmp_path: Path) -> None:
    """GIVEN a compiled model WHEN its calls are counted THEN nothing of ours is compiled."""
    done = finish(write(tmp_path, PROFILED), gpumon_dir)
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr
