"""The trainers are tuned through their own options."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.experiments.arm import Arm, together
from monitor.experiments.recipes import recipe_arms, recipe_of, write_config
from trainers import RECIPES


@pytest.mark.parametrize(
    ("command", "recipe"),
    [
        ("python -m trainers.tom500 --synthetic", "tom500"),
        ("python -m trainers tcn --synthetic", "tcn"),
        ("/usr/bin/gpumon train graph", "graph"),
        ("gpumon train --help", None),
        ("python train.py", None),
        ("python train.py train tom500", None),
    ],
)
def test_a_recipe_is_known_by_its_command(command: str, recipe: str | None) -> None:
    assert recipe_of(command.split()) == recipe


def test_what_the_user_has_chosen_is_left_alone() -> None:
    arms = recipe_arms(["python", "-m", "trainers.tcn", "--num-workers=4", "--no-use_torch_compile"], 2, 64)
    assert [arm.label for arm in arms] == [
        "--threads=1", "--products=all", "--products=none", "--batch_size=128",
    ]  # fmt: skip
    assert [arm.effect for arm in arms] == ["rounding", "rounding", "rounding", "changes_training"]


def test_what_has_no_effect_is_not_tried() -> None:
    naive = recipe_arms(["python", "-m", "trainers.tcn", "--rung", "naive"], 2, None, 0)
    assert [arm.label for arm in naive] == ["--num_workers=2", "--threads=1", "--use_torch_compile=true"]
    without_loader = recipe_arms(["python", "-m", "trainers.tcn"], 2, None)
    assert not any("num_workers" in arm.options for arm in without_loader)


def test_an_option_has_one_value_when_all_come_together() -> None:
    arms = [
        Arm(options={"num_workers": "2"}),
        Arm(options={"num_workers": "0"}),
        Arm(options={"threads": "1"}),
    ]
    assert together(arms).options == {"num_workers": "2", "threads": "1"}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_reads_what_is_saved(recipe: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from trainers import options
    from trainers.recipe import find

    path = tmp_path / "tuned.yaml"
    for arm in recipe_arms([], 2, 64, 1):
        write_config(str(path), arm.options)
        config = options.parse(find(recipe).config_class, ["--config", str(path), "--synthetic"], recipe, "")
        by_words = options.parse(find(recipe).config_class, [*arm.words, "--synthetic"], recipe, "")
        assert config == by_words
