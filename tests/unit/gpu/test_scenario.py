"""Scenario files are checked before anything starts, with one clear sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.gpu.scenario import EFFECTS, load_scenario
from monitor.gpu.source import open_source
from monitor.model.errors import UserError


def load(tmp_path: Path, text: str, gpus: int = 2) -> str:
    """The complaint about this scenario."""
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_scenario(path, gpus)
    assert str(path) in caught.value.sentence and "\n" not in caught.value.sentence
    return caught.value.sentence


@pytest.mark.parametrize("effect", EFFECTS)
def test_every_effect_works_with_its_defaults(tmp_path: Path, effect: str) -> None:
    path = tmp_path / "scenario.toml"
    path.write_text(f'[[event]]\nat = 1\neffect = "{effect}"\n')
    scenario = load_scenario(path, 1)
    quiet, acting = scenario.forces(0, -1, 0), scenario.forces(0, 0, 1)
    assert quiet != acting
    assert scenario.forces(0, -1, 0) == quiet


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[event]]\neffect = 'explode'", "explode"),
        ("[[event]]\nat = 3", "effect"),
        ("[[event]]\neffect = 'lose'\ncolour = 'red'", "colour"),
        ("[[events]]\neffect = 'lose'", "events"),
        ("[[event]]\neffect = 'lose'\nat = -1", "at"),
        ("[[event]]\neffect = 'lose'\nat = 9\nuntil = 3", "until (3) must be later than at (9)"),
        ("[[event]]\neffect = 'xid'\nuntil = 3", "happens once"),
        ("[[event]]\neffect = 'lose'\ngpu = 2", "no GPU 2, only 0 to 1"),
        ("[[event]]\neffect = 'lose'\ngpu = [0, 7]", "no GPU 7"),
        ("[[event]]\neffect = 'lose'\ngpu = 'first'", "gpu"),
        ("[[event]]\neffect = 'throttle'\nreason = 'boredom'", "unknown throttle reason 'boredom'"),
        ("[[event]]\neffect = 'throttle'\nclock = 1.5", "clock"),
        ("[[event]]\neffect = 'slow_pcie'\nwidth = 3", "3"),
        ("[[event]]\neffect = 'fill_memory'\nratio = 'much'", "ratio"),
        ("[[event]\n", "not valid TOML"),
        ("event = 3", "event"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in load(tmp_path, text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        load_scenario(tmp_path / "missing.toml", 1)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="not UTF-8"):
        load_scenario(tmp_path / "binary.toml", 1)
    with pytest.raises(UserError, match="cannot read"):
        load_scenario(tmp_path, 1)


def test_a_scenario_needs_the_simulated_source(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="simulated"):
        open_source("auto", scenario=tmp_path / "x.toml")


def test_the_number_of_gpus_is_checked() -> None:
    for gpus in (0, -3, 100_000):
        with pytest.raises(UserError, match="--gpus"):
            open_source("simulated", gpus=gpus)


def test_an_unknown_source_is_named() -> None:
    with pytest.raises(UserError, match="'magic'"):
        open_source("magic")  # type: ignore[arg-type]


def test_source_none_has_no_gpus() -> None:
    from monitor.model.clock import Moment

    readings = open_source("none").read(Moment.now(), None)
    assert readings.source.kind == "none" and readings.source.ok and readings.gpus == ()
