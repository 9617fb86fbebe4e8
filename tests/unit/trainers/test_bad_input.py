"""Bad options, bad checkpoints, full disks: one clear sentence, the documented exit code, nothing lost."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.unit.trainers.helpers import make
from trainers import RECIPES, cli, options
from trainers.engine import checkpoint
from trainers.errors import EXIT_FAILED, EXIT_USAGE, TrainerError
from trainers.recipe import find


def numbers_of(name: str) -> list[str]:
    """The numeric options of a recipe."""
    cls = find(name).config_class
    hints = typing.get_type_hints(cls)
    kinds = {field.name: options.plain_type(hints[field.name])[0] for field in dataclasses.fields(cls)}
    return [option for option, kind in kinds.items() if kind in (int, float)]


@pytest.mark.parametrize("name", RECIPES)
def test_a_negative_number_is_refused_for_every_option(name: str) -> None:
    for option in numbers_of(name):
        settings: dict[str, Any] = {option: -1}
        with pytest.raises(TrainerError, match=f"--{option} must be"):
            find(name).config_class(**settings)


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("tcn", "seq_len"),
        ("tcn", "channels"),
        ("tcn", "levels"),
        ("tcn", "prefetch_factor"),
        ("tcn", "synthetic_size"),
        ("tom500", "width"),
        ("reid", "num_instances"),
        ("graph", "time_k"),
        ("sequence", "hidden_size"),
        ("sequence", "threads"),
    ],
)
def test_zero_is_one_sentence_and_exit_code_2(
    name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(find(name), ["--synthetic", f"--{option}", "0"]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"trainers.{name}: --{option} must be") and said.count("\n") == 1


@pytest.mark.parametrize("words", [["--batch_size", "x"], ["--amp_dtype", "int8"], ["--nonsense"]])
def test_an_option_that_cannot_be_read_is_one_sentence(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(find("tcn"), ["--synthetic", *words]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert words[0] in said.splitlines()[0] and "usage" not in said and said.count("\n") <= 3


def test_a_diverged_run_names_no_checkpoint_that_does_not_exist(tmp_path: Path) -> None:
    trainer = make("sequence", tmp_path, lr=1e9, epochs=50, log_every=1)
    with pytest.raises(TrainerError, match="the loss became") as caught:
        trainer.fit()
    assert caught.value.code == EXIT_FAILED
    assert ("last.pt" in caught.value.sentence) == (tmp_path / "sequence" / "last.pt").exists()
    assert "--no-use_amp" not in (caught.value.hint or "")  # nothing was in mixed precision


# ── checkpoints ──


def damaged(path: Path, **changes: Any) -> None:
    content = torch.load(path, weights_only=True)
    content.update(changes)
    torch.save({key: value for key, value in content.items() if value != "gone"}, path)


@pytest.mark.parametrize(
    ("damage", "part"),
    [
        (lambda path: path.write_text("these are my notes\n"), "is not a checkpoint"),
        (lambda path: path.write_bytes(path.read_bytes()[:300]), "is not a checkpoint"),
        (lambda path: path.write_bytes(b""), "is not a checkpoint"),
        (lambda path: torch.save([1, 2], path), "is not a checkpoint of this version"),
        (lambda path: damaged(path, optimizer="gone", rng="gone"), "has no optimizer, rng"),
        (lambda path: damaged(path, model={}), "holds another model"),
        (lambda path: damaged(path, optimizer={"state": {}}), "holds another optimizer state"),
        (lambda path: damaged(path, position={"epoch": 1, "colour": 3}), "holds another run"),
    ],
)
def test_a_bad_checkpoint_is_one_sentence_and_is_kept(damage: Any, part: str, tmp_path: Path) -> None:
    make("sequence", tmp_path, epochs=1).fit()
    path = tmp_path / "sequence" / "last.pt"
    damage(path)
    before = path.read_bytes()
    with pytest.raises(TrainerError, match=part) as caught:
        make("sequence", tmp_path, epochs=2, resume="auto").fit()
    assert "weights_only" not in caught.value.sentence
    assert path.read_bytes() == before


def test_moments_of_another_shape_are_refused(tmp_path: Path) -> None:
    make("sequence", tmp_path, epochs=1).fit()
    path = tmp_path / "sequence" / "last.pt"
    state = torch.load(path, weights_only=True)["optimizer"]
    state["state"][0]["exp_avg"] = torch.zeros(3)
    damaged(path, optimizer=state)
    with pytest.raises(TrainerError, match="holds another optimizer state"):
        make("sequence", tmp_path, epochs=2, resume="auto").fit()


def test_a_checkpoint_on_a_full_disk_keeps_the_one_before(tmp_path: Path) -> None:
    # GIVEN a checkpoint, and a disk that takes no more (/dev/full refuses every write)
    path = tmp_path / "last.pt"
    checkpoint.save(path, {"a": torch.ones(3)})
    real = checkpoint.open if hasattr(checkpoint, "open") else open
    checkpoint.open = lambda name, mode: real("/dev/full", mode)  # type: ignore[attr-defined]
    # WHEN another one is saved
    try:
        with pytest.raises(TrainerError, match="No space left on device; the one from before is kept") as e:
            checkpoint.save(path, {"a": torch.zeros(100_000)})
    finally:
        del checkpoint.open  # type: ignore[attr-defined]
    # THEN the old one is intact and nothing else is left
    assert e.value.code == EXIT_FAILED
    assert torch.equal(checkpoint.load(path)["a"], torch.ones(3))
    assert list(tmp_path.iterdir()) == [path]
