"""The trainers' GPU paths, executed on the stand-in device: mixed precision, copies, resident data."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests import device
from tests.integration.trainers.launch import tiny
from trainers import RECIPES


def train(recipe: str, folder: Path, *words: str) -> tuple[dict[str, float], device.Result]:
    """The summary of a short run; inductor has no Triton here, so nothing is compiled."""
    common = ("--device=cuda", "--no-use_torch_compile", "--no-monitor", f"--out={folder}")
    command = [sys.executable, *tiny(recipe, *common, *words)]
    result = device.run_command(command, env={"XDG_CACHE_HOME": str(folder / "cache")})
    assert result.returncode == 0, result.stderr[-3000:]
    summary: dict[str, float] = json.loads(result.stdout.strip().splitlines()[-1])
    return summary, result


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_trains_and_validates_on_a_gpu(recipe: str, tmp_path: Path) -> None:
    summary, result = train(recipe, tmp_path, "--epochs=1", "--validation_interval=1", "--max_steps=4")
    assert str(summary["device"]).startswith("cuda")
    assert summary["steps"] > 0
    assert result.truth["devices"][0]["whole"]["kernels"] > 0
    assert "rung best on cuda" in result.stderr and "amp" in result.stderr


def test_the_pinned_ring_gives_the_slices_of_the_plain_gather(tmp_path: Path) -> None:
    code = f"""
        import torch
        from tests.unit.trainers.helpers import make
        from trainers.datasets.ring import RingSource
        trainer = make("tom500", {str(tmp_path)!r}, device="cuda", products="none", ablate="amp,compile")
        plain = make("tom500", {str(tmp_path)!r}, products="none")
        assert isinstance(trainer.data.train, RingSource)
        for epoch in (0, 1):
            both = (one.data.train.epoch(epoch, 4) for one in (trainer, plain))
            pairs = list(zip(*both, strict=True))
            assert len(pairs) > 3
            for ring, gathered in pairs:
                assert ring["image"].is_cuda
                for name in gathered:
                    assert torch.equal(ring[name].cpu(), gathered[name]), name
        print("same")
    """
    result = device.run_code(code)
    assert result.stdout.strip().endswith("same"), result.stderr[-3000:]


def test_the_pinned_ring_never_makes_the_host_wait(tmp_path: Path) -> None:
    code = f"""
        import torch
        from tests.unit.trainers.helpers import make
        options = dict(device="cuda", products="none", ablate="amp,compile", log_every=1000, norm_every=1000)
        trainer = make("tom500", {str(tmp_path)!r}, **options)
        trainer.train_steps(2)
        torch.cuda.set_sync_debug_mode("error")
        for batch in trainer.data.train.epoch(3):
            trainer.recipe.loss(trainer.model, batch)
        print("no wait")
    """
    result = device.run_code(code)
    assert result.stdout.strip().endswith("no wait"), result.stderr[-3000:]
