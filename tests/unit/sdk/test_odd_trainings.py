"""Trainings that do what hardly anybody does: profile functions of their own, errors that cannot be shown."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sdk import TrainingMonitor
from sdk.loop import warn
from sdk.sampling.step_profile import StepProfile
from tests.rings import read_ring
from tests.unit.sdk.loops import Recording, SlowModel
from tests.unit.sdk.test_watched_models import train


def users(frame: FrameType, event: str, argument: Any) -> None:
    """A profile function of the training."""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    sys.setprofile(None)


def test_a_profile_ends_without_taking_the_trainings_own_away() -> None:
    profile = StepProfile()
    assert profile.start(threading.get_ident(), 10**9)
    sys.setprofile(users)
    profile.stop()
    assert sys.getprofile() is users


def test_a_profile_that_is_put_back_when_it_is_over_goes_by_itself() -> None:
    profile = StepProfile()
    assert profile.start(threading.get_ident(), 10**9)
    kept = sys.getprofile()
    sys.setprofile(users)
    profile.stop()
    sys.setprofile(kept)
    len("")
    assert sys.getprofile() is None


def test_a_training_keeps_the_profile_function_it_sets_in_any_step(auto: Recording) -> None:
    found = []

    def loop() -> None:
        model = SlowModel()
        for steps in range(1, 12):
            before = sys.getprofile()
            sys.setprofile(users)
            train(model, steps)
            found.append(sys.getprofile())
            sys.setprofile(before)

    auto(loop)
    assert set(found) == {users}
    assert sys.getprofile() is None


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("no name")


class Odd(RuntimeError, metaclass=Nameless):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def test_an_error_that_can_neither_be_named_nor_shown(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor("odd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing to warn of
        with pytest.raises(Odd), monitor:
            for _ in range(3):
                monitor.step()
            raise Odd
    assert read_ring(next(gpumon_dir.glob("*.ring"))).meta["error"] == "Odd"


def test_a_warning_about_such_an_error_is_no_error(gpumon_dir: Path) -> None:
    monitor = TrainingMonitor("odd")
    with monitor, pytest.warns(RuntimeWarning, match="Odd inside gpumon; training continues"):
        monitor.session.failed(Odd())


def test_a_warning_that_cannot_be_shown_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(warnings, "warn", broken)
    monkeypatch.setattr(sys, "stderr", None)
    warn.warn_once("nobody can read this")
