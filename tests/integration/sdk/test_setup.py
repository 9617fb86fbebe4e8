"""What the time before the first step went into."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.sdk.scripts import HEAD, finish, gpumon, write
from tests.rings import trainer_rings

SCRIPT = (
    HEAD
    + """
import slow_module

class Late(Data):
    def __init__(self):
        time.sleep(0.3)
        super().__init__()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        time.sleep(0.2)
        self.last = nn.Linear(4, 2)
    def forward(self, x):
        return self.last(self.first(x))

def data():
    return DataLoader(Late(), batch_size=8)

loader = data() if sys.argv[1] == "data" else None
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = loader or data()
time.sleep(0.1)
for x, y in loader:
    step(model, optimizer, x, y)
wrapped = hasattr(nn.Module.__init__, "__wrapped__")
print("done", nn.Module.__init__.__name__, DataLoader.__init__.__name__, wrapped)
"""
)


@pytest.mark.parametrize("first", ["data", "model"])
def test_set_up_is_split(gpumon_dir: Path, tmp_path: Path, first: str) -> None:
    write(tmp_path, "import time\ntime.sleep(0.4)\n", "slow_module.py")
    done = finish(write(tmp_path, SCRIPT), gpumon_dir, first, front=gpumon(), python=sys.executable)
    assert done.stdout.strip() == "done __init__ __init__ False", done.stderr
    (found,) = trainer_rings(gpumon_dir)
    setup = found.config["setup"]
    assert setup["imports_seconds"] >= 0.4, "and torch itself"
    assert setup["data_seconds"] >= 0.3
    assert setup["model_seconds"] >= 0.2
    assert setup["other_seconds"] >= 0.1
    begin = found.records[0].words[1]
    assert sum(setup.values()) == pytest.approx(
        (begin - found.header.started_mono_ns) / 1e9, rel=0.02, abs=0.05
    )
