"""Machine-dependent optimizations are measured, remembered, shown, and can be overridden."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.trainers.helpers import make
from trainers import RECIPES
from trainers.errors import TrainerError
from trainers.recipe import find
from trainers.tuning import products


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "gpumon" / "products"


def measured_names(recipe: str) -> set[str]:
    return {item.name for item in find(recipe).optimizations if item.measured}


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_slower_here_is_left_off_and_the_losses_stay(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a machine on which every product doubles the time
    monkeypatch.setattr(products, "_interleaved", lambda on, off: (on(), off(), 2.0, 1.0)[2:])
    trainer = make(recipe, tmp_path, products="auto")
    # THEN none is on, and training gives the same losses as with all of them
    assert not trainer.recipe.switches & measured_names(recipe)
    both = make(recipe, tmp_path, products="all")
    assert measured_names(recipe) <= both.recipe.switches
    assert trainer.train_steps(2).losses == pytest.approx(both.train_steps(2).losses, rel=1e-3)


def test_a_choice_is_remembered_for_the_machine_and_the_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    calls: list[int] = []

    def measured(on: object, off: object) -> tuple[float, float]:
        calls.append(1)
        return 1.0, 2.0

    monkeypatch.setattr(products, "_interleaved", measured)
    first = make("reid", tmp_path, products="auto")
    assert calls and len(list(own_cache.iterdir())) == 1
    calls.clear()
    assert make("reid", tmp_path, products="auto").recipe.switches == first.recipe.switches
    assert not calls
    make("reid", tmp_path, products="auto", width=8)  # another shape
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # another machine
    make("reid", tmp_path, products="auto")
    assert len(list(own_cache.iterdir())) == 3


def test_a_real_measurement_leaves_the_random_numbers_alone(tmp_path: Path) -> None:
    measured, named = make("tcn", tmp_path, products="auto"), make("tcn", tmp_path, products="none")
    for one, two in zip(measured.model.parameters(), named.model.parameters(), strict=True):
        assert (one == two).all()


def test_names_override_and_unknown_ones_are_a_sentence(tmp_path: Path) -> None:
    only = make("graph", tmp_path, products="dense")
    assert only.recipe.on("dense") and not only.recipe.on("fused")
    with pytest.raises(TrainerError, match="no warp to choose here"):
        make("graph", tmp_path, products="warp")


@pytest.mark.parametrize("rung", ["naive", "document"])
def test_other_rungs_measure_nothing(rung: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_interleaved", lambda on, off: pytest.fail("measured"))
    make("tcn", tmp_path, rung=rung, products="auto")
