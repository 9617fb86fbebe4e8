"""Who this process is: rank, run id, commit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sdk.loop import _identity as identity


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


def test_the_command_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "train.py", "--wandb-key=abc", "--token", "def"])
    assert identity.command() == "python train.py --wandb-key=*** --token ***"
