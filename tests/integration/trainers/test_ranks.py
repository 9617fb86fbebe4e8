"""Two ranks under torchrun: cold caches, shards, validation on all ranks, the memory optimizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.integration.trainers.launch import finish, start, tiny, torchrun
from trainers import RECIPES
from trainers.engine import checkpoint

pytestmark = pytest.mark.slow
QUIET = ("--no-monitor", "--quiet")


def run(*words: str, cwd: Path) -> dict[str, float]:
    """The summary of a run that must succeed; its working folder is `cwd`."""
    code, out, err = finish(start(*words, cwd=cwd))
    assert code == 0, err
    (line,) = out.strip().splitlines()  # only the first rank speaks
    summary: dict[str, float] = json.loads(line)
    return summary


def both(recipe: str, folder: Path, *words: str) -> tuple[dict[str, float], dict[str, float]]:
    """The summaries of the same run with two ranks on cold caches, and with one process."""
    cold, alone = folder / "two", folder / "one"
    for place in (cold, alone):
        place.mkdir()
    words = ("--epochs=2", "--validation_interval=1", *QUIET, *words)
    two = run(*torchrun(), *tiny(recipe, *words, f"--out={cold}"), cwd=cold)
    one = run(*tiny(recipe, *words, f"--out={alone}"), cwd=alone)
    return two, one


@pytest.mark.parametrize("recipe", RECIPES)
def test_two_ranks_on_a_cold_cache_validate_like_one(recipe: str, tmp_path: Path) -> None:
    two, one = both(recipe, tmp_path, "--max_steps=1")
    metric = {"tom500": "dice", "reid": "mAP"}.get(recipe, "rmse")
    assert two["steps"] == one["steps"] == 1
    # Batch norm sees half a batch on each rank, so only recipes without it end with the same weights.
    tolerance = 0.5 if recipe in ("tom500", "reid") else 1e-3
    assert two[metric] == pytest.approx(one[metric], rel=tolerance, abs=0.1 if tolerance > 0.1 else None)


def test_the_document_rung_builds_its_graph_cache_once_for_both_ranks(tmp_path: Path) -> None:
    two, one = both("graph", tmp_path, "--rung=document", "--max_steps=3")
    assert two["rmse"] == pytest.approx(one["rmse"], rel=1e-3)
    assert not list((tmp_path / "two" / "graph_cache").glob("*.tmp*"))


@pytest.mark.parametrize("recipe", ["tcn", "graph"])
def test_shards_train_like_one_process_and_go_on(recipe: str, tmp_path: Path) -> None:
    # GIVEN a run in one process
    words = ("--clip_norm=1", *QUIET)
    one, two = tmp_path / "one", tmp_path / "two"
    two.mkdir()
    run(*tiny(recipe, *words, "--epochs=2", f"--out={one}"), cwd=tmp_path)
    # WHEN the same run is cut over two ranks, and stops and goes on in between
    sharded = (*torchrun(), *tiny(recipe, *words, "--parallel=fsdp", f"--out={two}"))
    run(*sharded, "--epochs=1", cwd=two)
    run(*sharded, "--epochs=2", "--resume=auto", cwd=two)
    # THEN both end with the same whole model
    whole, shards = (checkpoint.load(place / recipe / "last.pt")["model"] for place in (one, two))
    assert list(whole) == list(shards)
    for name, value in whole.items():
        assert torch.allclose(value, shards[name], atol=2e-3), name


def test_ranks_shrink_their_batch_together_before_memory_runs_out(tmp_path: Path) -> None:
    # GIVEN a machine whose memory is 90 % full, as far as the trainers can see
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.abc, sys\n"
        "class Full(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'trainers.loop':\n"
        "            from trainers.tuning import memory\n"
        "            memory.used_ratio = lambda device: 0.9\n"
        "sys.meta_path.insert(0, Full())\n"
    )
    words = tiny("tcn", "--epochs=4", "--use_memory_optimizer", *QUIET, f"--out={tmp_path}")
    code, out, err = finish(start(*torchrun(), *words, env=with_path(tmp_path)))
    assert code == 0, err
    assert json.loads(out)["memory_halvings"] >= 1


def with_path(folder: Path) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(folder)}
