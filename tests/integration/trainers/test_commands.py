"""The trainers as people start them: real processes, real signals, real ranks."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

from tests.conftest import wait_for
from tests.integration.trainers.launch import TINY, finish, start, tiny, torchrun
from trainers import RECIPES
from trainers.engine import checkpoint


def test_gpumon_train_lists_the_recipes_and_refuses_others() -> None:
    code, out, _ = finish(start("-m", "monitor.cli.main", "train"))
    assert code == 0
    assert all(name in out for name in RECIPES)
    code, _, err = finish(start("-m", "monitor.cli.main", "train", "alexnet"))
    assert code == 2
    assert "no recipe 'alexnet'" in err and "Traceback" not in err


@pytest.mark.slow
def test_gpumon_train_trains_and_is_seen_by_the_monitor(tmp_path: Path, gpumon_dir: Path) -> None:
    words = ("tcn", *tiny("tcn")[2:], "--products=auto", "--epochs=1", f"--out={tmp_path}", "--run_name=seen")
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
    code, _, err = finish(start("-m", "trainers.tcn", "--help", python=sys.executable, env=environment))
    assert code == 2
    assert "gpumon-train[trainers]" in err and "Traceback" not in err


@pytest.mark.slow
def test_ctrl_c_saves_and_a_second_run_goes_on_bit_by_bit(tmp_path: Path) -> None:
    words = tiny("tcn", "--no-monitor", "--epochs=20", "--validation_interval=20")
    # GIVEN a run that is interrupted somewhere in the middle
    run = start(*words, f"--out={tmp_path / 'cut'}", "--progress_every=1", "--log_every=1")
    last = tmp_path / "cut" / "tcn" / "last.pt"
    wait_for(last.exists)
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
    words = tiny("tcn", "--epochs=2", "--quiet")
    both = start(*torchrun(), *words, f"--out={tmp_path / 'two'}")
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
    words = (
        "--synthetic",
        "--synthetic_size=0.02",
        "--epochs=1",
        "--no-monitor",
        "--batch_size=32",
        "--products=all",
    )
    grid = ("--grid_hidden", "4,8", "--grid_lengths=10", f"--out={tmp_path}")
    code, _, err = finish(start("-m", "trainers.sequence", *words, *grid))
    assert code == 0, err
    best = json.loads((tmp_path / "grid.json").read_text())
    assert {(p["hidden_size"], p["sequence_length"]) for p in best["all"]} == {(4, 10), (8, 10)}
    assert best["best"]["rmse"] == min(p["rmse"] for p in best["all"])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["checkpoint", "generated data"])
def test_a_full_disk_is_one_sentence_and_exit_code_1(what: str, tmp_path: Path) -> None:
    # GIVEN a disk that takes no file above a size (the limit of a process behaves like a full disk)
    recipe, limit = ("tcn", 20_000) if what == "checkpoint" else ("tom500", 200)
    code = f"import resource, runpy; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
    code += f"runpy.run_module('trainers.{recipe}', run_name='__main__')"
    # WHEN a run writes more than that
    words = ("--synthetic", *TINY[recipe], "--epochs=1", "--no-monitor", "--quiet", f"--out={tmp_path}")
    result = finish(start("-B", "-c", code, *words))  # no bytecode, which would be cut off as well
    # THEN it ends with a sentence, and half a file is nowhere
    assert result[0] == 1, result[2]
    assert "File too large" in result[2] and "Traceback" not in result[2]
    assert not [path for path in tmp_path.rglob("*") if ".tmp" in path.name or path.name == "last.pt"]


@pytest.mark.slow
def test_mixed_precision_without_an_lstm_for_it_runs_that_part_in_float32(tmp_path: Path) -> None:
    words = tiny("sequence", "--use_amp", "--max_steps=3", "--no-monitor", f"--out={tmp_path}")
    avx2 = {**os.environ, "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    code, out, err = finish(start(*words, env=avx2))
    assert code == 0, err
    assert "that part runs in float32" in err
    assert json.loads(out)["rmse"] > 0


def test_options_without_effect_are_named(tmp_path: Path) -> None:
    words = tiny("tcn", "--max_steps=2", "--prefetch_factor=4", "--no-monitor", f"--out={tmp_path}")
    code, _, err = finish(start(*words))
    assert code == 0, err
    assert "--num_workers has no effect: batches are gathered from data kept in memory" in err
    assert "--prefetch_factor has no effect" in err
    assert "--pin_memory" not in err  # not given


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_can_be_analyzed(recipe: str, tmp_path: Path) -> None:
    words = (
        "--synthetic",
        "--num_iterations=15",
        "--json",
        "--products=all",
        *TINY[recipe],
        f"--out={tmp_path}",
    )
    code, out, err = finish(start("-m", "trainers.analyze", recipe, *words))
    assert code == 0, err
    figures = json.loads(out)
    assert {"data", "forward", "backward", "optimizer"} <= {phase["name"] for phase in figures["phases"]}


@pytest.mark.slow
def test_the_attention_of_a_run_is_written_as_table_and_plot(tmp_path: Path) -> None:
    command = ("-m", "trainers.sequence.attention", f"--out={tmp_path}")
    code, _, err = finish(start(*command))
    assert code == 2 and "train first" in err
    assert finish(start(*tiny("sequence", "--epochs=1", "--no-monitor", f"--out={tmp_path}")))[0] == 0
    code, _, err = finish(start(*command))
    assert code == 0, err
    days = json.loads((tmp_path / "sequence" / "attention.json").read_text())
    assert list(days)[-1] == "-1" and sum(days.values()) == pytest.approx(1, abs=1e-3)
    assert (tmp_path / "sequence" / "attention.png").stat().st_size > 1000
    (tmp_path / "sequence" / "attention.json").unlink()
    (tmp_path / "sequence" / "attention.json").mkdir()
    code, _, err = finish(start(*command))
    assert code == 1 and "cannot write to" in err and "Traceback" not in err


def test_a_picture_that_cannot_be_saved_is_said_before_measuring(tmp_path: Path) -> None:
    code, _, err = finish(start("-m", "trainers.graph.benchmark", f"--out={tmp_path}"))
    assert code == 2 and err.startswith("trainers.graph.benchmark: cannot write"), err


@pytest.mark.slow
def test_the_graph_benchmark_measures_true_peaks(tmp_path: Path) -> None:
    code, out, err = finish(start("-m", "trainers.graph.benchmark", f"--out={tmp_path / 'b.png'}"))
    assert code == 0, err
    assert (tmp_path / "b.png").exists()
    for figure in ("epochs/min", "training peak MB", "inference peak MB", "inference latency ms"):
        assert out.count(figure) == 3
