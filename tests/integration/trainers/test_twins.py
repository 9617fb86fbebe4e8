"""Under the daemon, every naive twin is diagnosed with the cause its document names.

Nothing in the trainers tells the monitor the answer: it sees the loader, the phases and the hot line.
The TCN is the demo's (test_demo.py).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from monitor.cli.demo import Stage
from monitor.client import Client
from monitor.snapshot import Finding

TWINS = {
    # recipe: (options, finding ids, file of the hot line or None)
    "tom500": (
        ("--width=2", "--depth=2", "--batch_size=2", "--synthetic_size=0.01", "--max_steps=30"),
        {"input.slow_getitem"},
        ("nifti.py", "tom500.py"),
    ),
    "reid": (
        ("--width=8", "--synthetic_size=0.02", "--batch_size=16", "--max_steps=60"),
        {"input.slow_sampler"},
        None,
    ),
    "graph": (
        ("--hidden_channels=16", "--synthetic_size=0.5", "--max_steps=200"),
        {"input.slow_getitem"},
        ("knn.py",),
    ),
    "sequence": (
        ("--hidden_size=8", "--sequence_length=30", "--max_steps=500"),
        {"input.slow_getitem", "input.no_workers", "input.bound"},
        None,
    ),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory):
    with Stage(tmp_path_factory.mktemp("twins"), "simulated", quick=True) as stage:
        yield stage


@pytest.mark.slow
@pytest.mark.parametrize("recipe", TWINS)
def test_the_cause_is_named(recipe: str, stage: Stage) -> None:
    options, expected, files = TWINS[recipe]
    found = watch(stage, recipe, options)
    named = [finding for finding in found if finding.id in expected]
    assert named, [finding.id for finding in found]
    if files:
        assert named[0].evidence["hot_line"].split(":")[0] in files
    assert named[0].speedup is not None and named[0].speedup.likely > 1.05


def watch(stage: Stage, recipe: str, options: tuple[str, ...]) -> list[Finding]:
    """Every finding the daemon had about the run while it lived, newest last state first."""
    common = ("--synthetic", "--rung=naive", "--epochs=1000", "--validation_interval=1000", "--quiet")
    words = [sys.executable, "-m", f"trainers.{recipe}", *common, *options, f"--run_name={recipe}"]
    with open(stage.folder / f"{recipe}.log", "wb") as log:
        child = stage.start([*words, f"--out={stage.folder / 'out'}"], log=log.fileno())
    client, found, deadline = Client(stage.url), {}, time.monotonic() + 100
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.5)
        snapshot = client.snapshot()
        ids = {run.id for run in snapshot.runs if run.name == recipe}
        found.update({finding.id: finding for finding in snapshot.findings if finding.run in ids})
    assert child.poll() == 0, Path(stage.folder / f"{recipe}.log").read_text()
    return list(found.values())
