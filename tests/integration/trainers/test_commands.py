"""The trainers as people start them: real processes, real signals, real ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.conftest import wait_for
from trainers import RECIPES
from trainers.engine import checkpoint

TINY = (
    "--synthetic",
    "--synthetic_size=0.01",
    "--seq_len=20",
    "--channels=4",
    "--batch_size=64",
    "--num_workers=0",
)


def start(*words: str, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )  # type: ignore[call-overload,no-any-return]


def finish(process: subprocess.Popen[str], seconds: float = 90) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


def test_gpumon_train_lists_the_recipes_and_refuses_others() -> None:
    code, out, _ = finish(start("-m", "monitor.cli.main", "train"))
    assert code == 0
    assert all(name in out for name in RECIPES)
    code, _, err = finish(start("-m", "monitor.cli.main", "train", "alexnet"))
    assert code == 2
    assert "no recipe 'alexnet'" in err and "Traceback" not in err


def test_the_monitors_list_of_recipes_is_the_trainers() -> None:
    from monitor.cli import train

    assert train.RECIPES == RECIPES


@pytest.mark.slow
def test_gpumon_train_trains_and_is_seen_by_the_monitor(tmp_path: Path, gpumon_dir: Path) -> None:
    words = ("tcn", *TINY, "--epochs=1", f"--out={tmp_path}", "--run_name=seen")
    code, out, err = finish(start("-m", "monitor.cli.main", "train", *words))
    assert code == 0, err
    summary = json.loads(out.strip().splitlines()[-1])
    assert summary["steps"] > 0 and summary["rmse"] > 0
    from sdk import ring

    (path,) = [p for p in gpumon_dir.iterdir() if p.suffix == ring.SUFFIX and ".w" not in p.name]
    fd = os.open(path, os.O_RDONLY)
    header, meta = ring.read_header(fd, path.stat().st_size), ring.read_meta(fd)
    os.close(fd)
    assert meta is not None and meta["name"] == "seen"
    assert header.head == summary["steps"]


def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    code, _, err = finish(start("-m", "trainers.tcn", "--data_dir", str(tmp_path / "none*")))
    assert code == 2
    assert "matches nothing" in err and "hint:" in err and "Traceback" not in err


def test_without_torch_it_names_the_extra(tmp_path: Path) -> None:
    # GIVEN a Python that finds our package but not torch
    blocker = tmp_path / "sitecustomize.py"
    blocker.write_text(
        "import importlib.util as u\nfound = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'torch' else found(name, *a)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    code, _, err = finish(start("-m", "trainers.tcn", "--help", env=environment))
    assert code == 2
    assert "gpumon[trainers]" in err and "Traceback" not in err


@pytest.mark.slow
def test_ctrl_c_saves_and_a_second_run_goes_on_bit_by_bit(tmp_path: Path) -> None:
    words = ("-m", "trainers.tcn", *TINY, "--no-monitor", "--epochs=20", "--validation_interval=20")
    # GIVEN a run that is interrupted somewhere in the middle
    run = start(*words, f"--out={tmp_path / 'cut'}", "--progress_every=1", "--log_every=1")
    last = tmp_path / "cut" / "tcn" / "last.pt"
    wait_for(last.exists, seconds=60)
    run.send_signal(signal.SIGINT)
    code, out, err = finish(run)
    assert code == 130, err
    assert json.loads(out.strip().splitlines()[-1])["interrupted"]
    # WHEN it is resumed, beside one that was never interrupted
    assert finish(start(*words, f"--out={tmp_path / 'cut'}", "--resume=auto", "--quiet"))[0] == 0
    assert finish(start(*words, f"--out={tmp_path / 'whole'}", "--quiet"))[0] == 0
    # THEN both end with the same bits
    one, two = (checkpoint.load(tmp_path / name / "tcn" / "last.pt") for name in ("cut", "whole"))
    assert one["position"]["step"] == two["position"]["step"]
    assert all(torch.equal(one["model"][name], two["model"][name]) for name in one["model"])


@pytest.mark.slow
def test_two_ranks_train_like_one(tmp_path: Path, gpumon_dir: Path) -> None:
    words = ("-m", "trainers.tcn", *TINY, "--epochs=2", "--quiet")
    launch = ("-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0", "--standalone")
    both = start(*launch, *words, f"--out={tmp_path / 'two'}")
    code, out, err = finish(both)
    assert code == 0, err
    assert len(out.strip().splitlines()) == 1  # rank 0 speaks
    assert finish(start(*words, f"--out={tmp_path / 'one'}", "--no-monitor"))[0] == 0
    one, two = (checkpoint.load(tmp_path / name / "tcn" / "last.pt") for name in ("one", "two"))
    for name, value in one["model"].items():
        assert torch.allclose(value, two["model"][name], atol=5e-4), name
    ranks = {path.name.split(".")[-2] for path in gpumon_dir.glob("*.ring")}
    assert ranks == {"0", "1"}


@pytest.mark.slow
def test_the_parameter_grid_trains_every_combination(tmp_path: Path) -> None:
    words = ("--synthetic", "--synthetic_size=0.02", "--epochs=1", "--no-monitor", "--batch_size=32")
    grid = ("--grid_hidden", "4,8", "--grid_lengths=10", f"--out={tmp_path}")
    code, _, err = finish(start("-m", "trainers.sequence", *words, *grid))
    assert code == 0, err
    best = json.loads((tmp_path / "grid.json").read_text())
    assert {(p["hidden_size"], p["sequence_length"]) for p in best["all"]} == {(4, 10), (8, 10)}
    assert best["best"]["rmse"] == min(p["rmse"] for p in best["all"])
