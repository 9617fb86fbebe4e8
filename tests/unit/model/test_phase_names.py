"""What phases are called, and what a step's own times are without."""

from __future__ import annotations

import pytest

from monitor.model.phase_names import apart, moment


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        (("forward", "backward"), ""),
        (("forward", "validate"), " without validation"),
        (("checkpoint",), " without checkpoints"),
        (("validate", "checkpoint", "data"), " without validation and checkpoints"),
    ],
)
def test_times_of_a_step_say_what_they_are_without(phases: tuple[str, ...], said: str) -> None:
    assert apart(phases) == said


def test_between_two_steps_is_in_none_of_them() -> None:
    assert (moment("backward"), moment("between")) == ("in backward", "between two steps")
