"""Rungs: the same batches and the same losses, whatever is switched on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.trainers.helpers import indices, make
from trainers import RECIPES, rungs
from trainers.errors import TrainerError
from trainers.recipe import find
from trainers.tcn.options import TcnConfig
from trainers.tcn.recipe import TcnRecipe

TOLERANCE = {"tcn": 1e-5, "tom500": 2e-3, "reid": 1e-3, "graph": 1e-4, "sequence": 1e-5}
"""Relative; other kernels add in a different order. Batch norm and a triplet's arg-max amplify that."""


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_all_rungs_train_on_the_same_batches_with_the_same_losses(name: str, tmp_path: Path) -> None:
    # GIVEN one trainer per rung
    trainers = {rung: make(name, tmp_path, rung=rung) for rung in ("naive", "document", "best")}
    # WHEN each trains five steps
    losses = {rung: trainer.train_steps(5).losses for rung, trainer in trainers.items()}
    # THEN batches are identical and losses equal up to rounding
    naive = losses["naive"]
    assert len(naive) == 5
    for rung in ("document", "best"):
        assert losses[rung] == pytest.approx(naive, rel=TOLERANCE[name])
    if name != "tcn":  # its resident plan is in rows, compared below
        assert (
            indices(trainers["naive"], 3) == indices(trainers["document"], 3) == indices(trainers["best"], 3)
        )


def test_the_resident_tcn_plan_takes_the_same_windows(tmp_path: Path) -> None:
    naive, best = make("tcn", tmp_path, rung="naive"), make("tcn", tmp_path, rung="best")
    for slow, fast in zip(naive.data.train.epoch(2), best.data.train.epoch(2), strict=True):
        assert (slow["inputs"] == fast["inputs"]).all()
        assert (slow["targets"] == fast["targets"]).all()


@pytest.mark.parametrize("name", RECIPES)
def test_every_single_optimization_can_be_switched_off(name: str, tmp_path: Path) -> None:
    reference = make(name, tmp_path, rung="best").train_steps(1).losses
    for item in find(name).optimizations:
        if item.gpu_only or item.name == "compile":
            continue
        trainer = make(name, tmp_path, rung="best", ablate=item.name)
        assert not trainer.recipe.on(item.name)
        assert trainer.train_steps(1).losses == pytest.approx(reference, rel=1e-3)


def test_flags_and_ablate_change_the_rungs_set() -> None:
    known = TcnRecipe.optimizations
    assert rungs.resolve(TcnConfig(rung="naive"), known, cuda=True) == frozenset()
    assert "amp" in rungs.resolve(TcnConfig(rung="document"), known, cuda=True)
    assert "amp" not in rungs.resolve(TcnConfig(rung="document"), known, cuda=False)
    assert "compile" in rungs.resolve(TcnConfig(rung="best"), known, cuda=True)
    off = TcnConfig(rung="best", use_torch_compile=False, cache_data=False)
    assert not {"compile", "cache_data"} & rungs.resolve(off, known, cuda=True)
    assert "compile" in rungs.resolve(TcnConfig(use_torch_compile=True), known, cuda=False)
    mixed = TcnConfig(rung="naive", ablate="+fused, +throttle")
    assert rungs.resolve(mixed, known, cuda=False) == {"fused", "throttle"}


def test_an_unknown_ablation_is_one_sentence_with_the_list() -> None:
    with pytest.raises(TrainerError) as caught:
        rungs.resolve(TcnConfig(ablate="warp"), TcnRecipe.optimizations, cuda=False)
    assert "warp" in caught.value.sentence
    assert "normalise_once" in (caught.value.hint or "")
