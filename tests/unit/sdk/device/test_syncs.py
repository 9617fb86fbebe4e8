"""Warnings of synchronising operations: counted by line, never shown, nothing left behind."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from sdk import ring
from sdk.device._syncs import STEPS, SyncWindow


class Cuda:
    """The mode torch keeps, and an operation that waits."""

    def __init__(self, mode: int = 0) -> None:
        self.mode = mode

    def get_sync_debug_mode(self) -> int:
        return self.mode

    def set_sync_debug_mode(self, mode: int) -> None:
        self.mode = mode

    def item(self) -> None: ...


_ITEM = """
def item(self):
    if self.mode == 1:
        warnings.warn("called a synchronizing CUDA operation", stacklevel=2)
"""
exec(compile(_ITEM, "<torch>", "exec"), {"warnings": warnings}, found := dict[str, Any]())
Cuda.item = found["item"]  # type: ignore[method-assign]  # code that is not the user's


def test_lines_are_counted_and_nothing_is_shown(recwarn: pytest.WarningsRecorder) -> None:
    cuda, flags = Cuda(), list[int]()
    filters, shown_by = list(warnings.filters), warnings.showwarning
    window = SyncWindow(cuda, flags.append)
    window.step()
    for _ in range(STEPS):
        for _ in range(3):
            cuda.item()
        cuda.item()
        window.step()
    assert window.lines is not None
    assert [(one["per_step"], "cuda.item()" in one["code"]) for one in window.lines] == [
        (3.0, True),
        (1.0, True),
    ]
    assert flags == [ring.F_SAMPLED] * STEPS
    assert not recwarn.list and cuda.mode == 0
    assert (list(warnings.filters), warnings.showwarning) == (filters, shown_by)


def test_other_warnings_go_on(recwarn: pytest.WarningsRecorder) -> None:
    window = SyncWindow(Cuda(), lambda flags: None)
    window.step()
    warnings.warn("something else", stacklevel=1)
    window.close()
    assert [str(one.message) for one in recwarn.list] == ["something else"]


def test_a_training_that_turns_warnings_into_errors_is_not_stopped() -> None:
    cuda = Cuda()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        window = SyncWindow(cuda, lambda flags: None)
        window.step()
        cuda.item()
        window.close()
    assert window.lines


@pytest.mark.parametrize("mode", [1, 2])
def test_a_training_with_a_mode_of_its_own_is_left_alone(mode: int) -> None:
    cuda = Cuda(mode)
    window = SyncWindow(cuda, lambda flags: None)
    window.step()
    window.step()
    assert cuda.mode == mode and window.lines == []
