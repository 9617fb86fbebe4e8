"""Every way in beside `torch.compile(fullgraph=True)`: not one graph break more, and the same bits."""

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
way = sys.argv[1]
monitor = TrainingMonitor.auto() if way == "auto" else None
if way in ("phase", "lap"):
    monitor = TrainingMonitor("c")
if monitor and way != "auto":
    monitor.start_monitoring()
model, optimizer = net()

def loss(x, y):
    if way == "phase":
        with monitor.phase("forward"):
            out = model(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = out * 1
        return nn.functional.cross_entropy(out.float(), y)
    if way == "lap":
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
batches = monitor.loader(loader) if monitor and way != "auto" else loader
for _ in range(4):
    for x, y in batches:
        optimizer.zero_grad()
        compiled(x, y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if monitor and way != "auto":
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
    for way, front in (("phase", ()), ("lap", ()), ("auto", ()), ("plain", gpumon())):
        done = finish(script, gpumon_dir, way, front=front)
        assert (done.stdout, done.returncode) == (plain.stdout, 0), f"{way}: {done.stderr}"
    rings = trainer_rings(gpumon_dir)
    assert len(rings) == 4
    for found in rings:
        assert found.header.head == 32
        assert found.records[0].flags & ring.F_COMPILED and found.records[0].flags & ring.F_WARMUP
        assert found.config["compile"]["used"] is True and found.config["compile"]["graph_breaks"] == 0
        autocast = found.config["precision"].get("autocast")
        assert autocast is not False, "it is on in there, and compiled code does not tell that it is off"
