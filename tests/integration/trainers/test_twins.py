"""Under the daemon, every naive twin is diagnosed with the cause its document names.

Nothing in the trainers tells the monitor the answer: it sees the loader, the phases and the hot line.
The TCN is the demo's (test_demo.py).
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

import pytest

from monitor.client import Client
from monitor.demo.stage import Props, Stage
from monitor.model.finding import Finding
from tests import warm
from tests.conftest import PATIENCE, wait_for

TWINS = {
    # recipe: (options, finding ids, file of the hot line or None)
    "tom500": (
        ("--width=2", "--depth=2", "--batch_size=2", "--synthetic_size=0.01"),
        {"input.slow_getitem"},
        ("nifti.py", "data.py"),
    ),
    "reid": (
        ("--width=8", "--synthetic_size=0.02", "--batch_size=16"),
        {"input.slow_sampler"},
        None,
    ),
    "graph": (
        ("--hidden_channels=16", "--synthetic_size=0.5"),
        {"input.slow_getitem"},
        ("knn.py",),
    ),
    "sequence": (
        ("--hidden_size=8", "--sequence_length=30"),
        {"input.slow_getitem", "input.no_workers", "input.bound"},
        None,
    ),
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory):
    with Stage(tmp_path_factory.mktemp("twins"), Props("simulated")) as stage:
        yield stage


@pytest.mark.slow
@pytest.mark.parametrize("recipe", TWINS)
def test_the_cause_is_named(recipe: str, stage: Stage) -> None:
    options, expected, files = TWINS[recipe]
    seen: dict[str, Finding] = {}

    def named() -> Finding | None:
        seen.update({finding.id: finding for finding in findings_about(stage, recipe)})
        found = (seen[id] for id in expected if id in seen)
        return next((one for one in found if not files or "hot_line" in one.evidence), None)

    with training(stage, recipe, options) as child:
        finding = wait_for(lambda: named() or child.poll() is not None, every=0.5)
    assert isinstance(finding, Finding), (list(seen), (stage.folder / f"{recipe}.log").read_text())
    if files:
        assert finding.evidence["hot_line"].split(":")[0] in files
    assert finding.speedup is not None and finding.speedup.likely > 1.05


@contextlib.contextmanager
def training(stage: Stage, recipe: str, options: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """The naive twin, for as long as somebody looks at it."""
    common = ("--synthetic", "--rung=naive", "--epochs=100000", "--validation_interval=100000", "--quiet")
    words = [warm.python(), "-m", f"trainers.{recipe}", *common, *options, f"--run_name={recipe}"]
    child = stage.start([*words, f"--out={stage.folder / 'out'}"], recipe)
    try:
        yield child
    finally:
        child.terminate()
        child.wait(timeout=PATIENCE)


def findings_about(stage: Stage, recipe: str) -> list[Finding]:
    with Client(stage.url) as client:
        snapshot = client.snapshot()
    ids = {run.id for run in snapshot.runs if run.name == recipe}
    return [finding for finding in snapshot.findings if finding.run in ids]
