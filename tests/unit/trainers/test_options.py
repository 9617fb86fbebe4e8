"""Options: booleans in every spelling, YAML, aliases, one sentence for what is wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.unit.trainers.helpers import make
from trainers import RECIPES, options
from trainers.errors import TrainerError
from trainers.graph.options import GraphConfig
from trainers.recipe import find
from trainers.tcn.options import TcnConfig
from trainers.tom500.options import Tom500Config


def parse(*words: str) -> TcnConfig:
    return options.parse(TcnConfig, words, "test", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], None),
        (["--use_torch_compile"], True),
        (["--use_torch_compile=False"], False),
        (["--use_torch_compile", "False"], False),
        (["--use_torch_compile=true"], True),
        (["--no-use_torch_compile"], False),
        (["--no-use-torch-compile"], False),
        (["--compile_model"], True),
        (["--use-torch-compile"], True),
    ],
)
def test_booleans_really_switch(words: list[str], expected: bool | None) -> None:
    assert parse(*words).use_torch_compile is expected


def test_the_documents_flags_keep_names_and_defaults() -> None:
    config = parse("--data_dir", "data_simulation_*", "--prefetch_factor", "8", "--cache_data", "--use_amp")
    assert (config.batch_size, config.lr, config.lambda_physics) == (512, 1e-3, 0.5)
    assert (config.prefetch_factor, config.cache_data, config.use_amp) == (8, True, True)
    assert options.parse(Tom500Config, [], "test", "").validation_interval == 20
    graph = options.parse(GraphConfig, ["--use_gradient_checkpoint"], "test", "")
    assert graph.use_gradient_checkpoint and graph.batch_size == 16


@pytest.mark.parametrize("name", RECIPES)
def test_every_field_has_help(name: str) -> None:
    cls = find(name).config_class
    docs = options.field_docs(cls)
    assert [field.name for field in dataclasses.fields(cls) if not docs.get(field.name)] == []


def test_a_config_file_is_read_and_the_command_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "use_optimized_model: true\nbatch_size: 8\nhidden-channels: 32\ncolumns: [a, b]\nuse_amp: off\n"
    )
    config = options.parse(GraphConfig, ["--config", str(path), "--batch_size", "4"], "test", "")
    assert (config.batch_size, config.hidden_channels, config.columns) == (4, 32, "a,b")
    assert config.use_amp is False


def test_a_written_config_can_be_read_again(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(options.to_yaml(TcnConfig(channels=8, ablate="fused")))
    assert options.parse(TcnConfig, ["--config", str(path)], "test", "") == TcnConfig(
        channels=8, ablate="fused"
    )


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("batchsize: 8\n", "batchsize"),
        ("batch_size: many\n", "not a int"),
        ("rung: fastest\n", "none of naive"),
        ("- a\n- b\n", "option: value"),
        ("a: [\n", "not YAML"),
    ],
)
def test_a_bad_config_file_is_one_sentence(text: str, part: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(TrainerError, match=part):
        options.parse(TcnConfig, ["--config", str(path)], "test", "")


def test_impossible_values_are_refused_when_the_config_is_built() -> None:
    for bad in ({"batch_size": 0}, {"lr": 0.0}, {"validation_fraction": 1.5}, {"num_workers": -1}):
        with pytest.raises(TrainerError):
            TcnConfig(**bad)
    with pytest.raises(TrainerError, match="time_k"):
        GraphConfig(time_k=64, window_size=64)


def test_columns_of_generated_runs_are_taken_by_name(tmp_path: Path) -> None:
    trainer = make("tcn", tmp_path, input_columns="measured, force", lambda_physics=0)
    batch = next(iter(trainer.data.train.epoch(0)))
    assert batch["inputs"].shape[2] == 2 and batch["targets"].shape[2] == 2
    trainer.train_steps(1)
    with pytest.raises(TrainerError, match="no column fource: there are force, measured"):
        make("tcn", tmp_path, input_columns="fource", lambda_physics=0)


@pytest.mark.parametrize(("text", "part"), [(" , ", "names nothing"), ("rgb,nir,rgb", "names rgb twice")])
def test_a_list_that_is_empty_or_doubled_is_a_sentence(text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match=part):
        make("reid", tmp_path, modalities=text)


def test_what_generated_data_does_not_ask_for_is_named(tmp_path: Path) -> None:
    trainer = make("graph", tmp_path, rung="naive", fill="linear", products="all", parallel="fsdp")
    named = dict(trainer.recipe.without_effect())
    assert {"fill", "dates", "columns", "products", "parallel"} <= set(named)
    assert "image_size" not in dict(make("tom500", tmp_path).recipe.without_effect())
