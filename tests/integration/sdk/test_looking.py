"""What looking at a training does to it, and what it writes down, seen from outside the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from sdk.sampling.hotspots import ENOUGH, MAX_WINDOWS
from tests.integration.sdk.scripts import HEAD, finish, gpumon, write

PER_SAMPLE, BESIDES = 2, 500
"""Most switches a sample may cause, and what everything else of ours may cause in a run of this length. The
sampling that woke the training's thread at every turn of the lock caused twenty thousand."""
COMPUTING = (
    HEAD
    + """
import resource

class Sums(Data):
    def __getitem__(self, index):
        total = 0.0
        for k in range(3000):
            total += (index * k) % 7
        return torch.full((4,), total), torch.tensor(index % 2)

model, optimizer = net()
for x, y in DataLoader(Sums(3200), batch_size=16):
    step(model, optimizer, x, y)
print(resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw)
"""
)
SECRET = "sk-4f9a8c1d2e3b"


@pytest.mark.slow
def test_sampling_does_not_make_the_training_wait(gpumon_dir: Path, tmp_path: Path) -> None:
    """GIVEN a training that computes WHEN it is sampled THEN its thread goes to sleep hardly more often."""
    script = write(tmp_path, COMPUTING)
    bare, watched = (int(finish(script, gpumon_dir, front=front).stdout) for front in ((), gpumon()))
    assert watched - bare <= PER_SAMPLE * ENOUGH * MAX_WINDOWS + BESIDES


def test_secrets_in_arguments_are_in_no_ring(gpumon_dir: Path, tmp_path: Path) -> None:
    script = write(tmp_path, HEAD + "m, o = net()\nfor x, y in DataLoader(Data(), 8): step(m, o, x, y)\n")
    words = (f"--api-key={SECRET}", "--token", SECRET, f"https://me:{SECRET}@example.org/data", "--rate=0.1")
    done = finish(script, gpumon_dir, *words, front=gpumon())
    assert done.returncode == 0, done.stderr
    written = b"".join(path.read_bytes() for path in gpumon_dir.glob("*.ring"))
    assert b"--rate=0.1" in written and SECRET.encode() not in written
