"""Whole-run figures in constant memory, identity, and the light import."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdk import identity, ring
from sdk.phases import OTHER, PhaseNames
from sdk.statistics import Histogram


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=300), st.sampled_from([0.5, 0.95, 0.99]))
def test_quantiles_are_close(values: list[int], share: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    exact = ordered[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]
    found = histogram.quantile(share)
    assert found is not None
    assert found == pytest.approx(exact, rel=0.035, abs=1)


def test_median_of_a_real_shape() -> None:
    chance = random.Random(7)
    values = [int(chance.lognormvariate(15, 0.4)) for _ in range(5000)]
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    assert histogram.quantile(0.5) == pytest.approx(statistics.median(values), rel=0.03)


def test_phase_names() -> None:
    names = PhaseNames()
    assert names.register("forward") == ring.PHASES.index("forward")
    assert [names.register(f"own{n}") for n in range(5)] == [12, 13, 14, 15, OTHER]
    assert names.name(13) == "own1" and names.name(OTHER) == "other"
    assert names.folded == {"own4": 1}


def test_rank_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("SLURM_PROCID", "3")
    monkeypatch.setenv("SLURM_NTASKS", "8")
    assert (identity.rank(), identity.world()) == (3, 8)
    monkeypatch.setenv("RANK", "5")
    assert identity.rank() == 5


def test_all_ranks_of_a_launch_share_the_run_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUMON_RUN_ID", raising=False)
    for name, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "1234"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RANK", "0")
    first = identity.run_id("net")
    monkeypatch.setenv("RANK", "1")
    assert identity.run_id("net") == first
    monkeypatch.setenv("MASTER_PORT", "1235")
    assert identity.run_id("net") != first


def test_runs_of_one_process_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("GPUMON_RUN_ID", "WORLD_SIZE", "SLURM_NTASKS"):
        monkeypatch.delenv(variable, raising=False)
    assert identity.run_id("a b/c") != identity.run_id("a b/c")
    assert "/" not in identity.run_id("a b/c")


def test_git_commit_without_git(tmp_path: Path) -> None:
    commit = "ab" * 20
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    script = tmp_path / "src" / "train.py"
    script.parent.mkdir()
    assert identity.git_commit(str(script)) is None
    (git / "packed-refs").write_text(f"# pack-refs\n{commit} refs/heads/main\n")
    assert identity.git_commit(str(script)) == commit
    (git / "refs/heads/main").write_text("cd" * 20 + "\n")
    assert identity.git_commit(str(script)) == "cd" * 20


def python(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), **environment},
    )  # fmt: skip
    return result.stdout.strip()


def test_import_is_standard_library_only() -> None:
    """No site-packages at all (-S), and not a heavy module of the standard library either."""
    loaded = python("import sys; from sdk import TrainingMonitor; print(*sys.modules)").split()
    assert "sdk.monitor" in loaded
    assert not {"torch", "numpy", "msgspec", "asyncio", "multiprocessing", "ctypes"} & set(loaded)


def test_import_is_light(tmp_path: Path) -> None:
    """The best of six, with bytecode as installed: twice the goal of 30 ms, 5 MB more than Python itself."""
    code = (
        "import time, resource; b = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "t = time.process_time(); from sdk import TrainingMonitor; t = time.process_time() - t;"
        "print(t, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - b)"
    )
    cache = {"PYTHONPYCACHEPREFIX": str(tmp_path), "PYTHONDONTWRITEBYTECODE": ""}
    runs = [tuple(map(float, python(code, **cache).split())) for _ in range(6)]
    assert min(seconds for seconds, _ in runs) < 0.060
    assert min(kilobytes for _, kilobytes in runs) < 5 * 1024
