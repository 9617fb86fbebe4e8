"""Machine-dependent optimizations are measured, remembered, shown, and can be overridden."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.unit.trainers.helpers import make
from trainers import RECIPES
from trainers.errors import TrainerError
from trainers.recipe import find
from trainers.tuning import products, trial


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
    # GIVEN a machine on which every product costs twice the time
    slower = trial.Ratio((0.5, 0.5, 0.5))
    monkeypatch.setattr(trial, "interleaved", lambda before, after: (before(), after(), slower)[2])
    trainer = make(recipe, tmp_path, products="auto")
    # THEN none is on, and training gives the losses it gives with all of them
    assert not trainer.recipe.switches & measured_names(recipe)
    both = make(recipe, tmp_path, products="all")
    assert measured_names(recipe) <= both.recipe.switches
    assert trainer.train_steps(2).losses == pytest.approx(both.train_steps(2).losses, rel=1e-3)


@pytest.mark.slow
def test_a_choice_is_remembered_for_the_machine_and_the_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    calls: list[int] = []

    def measured(before: object, after: object) -> trial.Ratio:
        calls.append(1)
        return trial.Ratio((2.0, 2.0, 2.0))

    monkeypatch.setattr(trial, "interleaved", measured)
    first = make("reid", tmp_path, products="auto")
    assert calls and len(list(own_cache.iterdir())) == 1
    calls.clear()
    assert make("reid", tmp_path, products="auto").recipe.switches == first.recipe.switches
    assert not calls
    make("reid", tmp_path, products="auto", width=8)  # another shape
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")  # another machine
    make("reid", tmp_path, products="auto")
    assert len(list(own_cache.iterdir())) == 3


@pytest.mark.slow
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
    monkeypatch.setattr(trial, "interleaved", lambda before, after: pytest.fail("measured"))
    make("tcn", tmp_path, rung=rung, products="auto")


def test_what_only_noise_speaks_for_is_left_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rounds in ((1.0, 1.002, 0.998), (1.3, 0.9, 1.2, 0.8), (1.005, 1.006, 1.007)):
        assert not trial.Ratio(rounds).pays
    assert trial.Ratio((1.02, 1.03, 0.99, 1.02)).pays
    monkeypatch.setattr(trial, "interleaved", lambda before, after: trial.Ratio((1.0, 1.001, 0.999)))
    trainer = make("tcn", tmp_path, products="auto")
    assert not trainer.recipe.switches & measured_names("tcn")


def test_what_pays_alone_but_not_together_is_left_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN a machine on which each product pays, but all of them together cost
    def measured(before: trial.Arm, after: trial.Arm) -> trial.Ratio:
        alone = len(after.switches - before.switches) == 1
        return trial.Ratio((1.2,) * 3 if alone else (0.9,) * 3)

    monkeypatch.setattr(trial, "interleaved", measured)
    trainer = make("graph", tmp_path, products="auto")
    # THEN the run is the document's, but for what never costs
    assert not trainer.recipe.switches & measured_names("graph")


def test_a_product_of_the_machine_is_found_by_real_rounds() -> None:
    def work(count: int) -> None:
        sum(range(count))

    found = trial.interleaved(lambda: work(60_000), lambda: work(20_000))
    assert found.pays and found.middle > 1.5
    assert not trial.interleaved(lambda: work(20_000), lambda: work(60_000)).pays


def test_what_others_take_of_the_core_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.get_num_threads", lambda: 1)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert trial.timed(lambda: time.sleep(0.05), 1) < 0.04


def test_bfloat16_is_offered_but_never_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trial, "interleaved", lambda before, after: trial.Ratio((1.5,) * 3))
    monkeypatch.setattr(products, "_has_bfloat16", lambda: True)
    trainer = make("tcn", tmp_path, products="auto", quiet=False)
    assert not trainer.recipe.on("amp")
    assert "bfloat16 is ×1.5 here, with other rounding: --use_amp" in capsys.readouterr().err
