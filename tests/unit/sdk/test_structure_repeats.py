"""Backward passes through one graph: which of them could be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sdk.structure.repeats import repeated_passes
from sdk.structure.source import forget

LOOP = "for loss in losses.values():\n    loss.backward(retain_graph=True)"
LAST = "for n, loss in enumerate(losses):\n    loss.backward(retain_graph=n < len(losses) - 1)"
APART = "first.backward(retain_graph=True)\nsecond.backward()"
SCALED = "scaler.scale(first).backward(retain_graph=True)\nscaler.scale(second).backward(retain_graph=True)"
COMPREHENSION = "[loss.backward(retain_graph=True) for loss in losses]"

OWN_GRAPHS = "for loss in losses:\n    loss.backward()"
ACCUMULATED = "for x in parts:\n    loss = model(x)\n    loss.backward(retain_graph=True)"
CLEARED = "first.backward(retain_graph=True)\noptimizer.zero_grad()\nsecond.backward()"
READ = "for loss in losses:\n    loss.backward(retain_graph=True)\n    norms.append(weight.grad.norm())"
ALONE = "loss.backward(retain_graph=True)\noptimizer.step()"
SWITCHED_OFF = "first.backward(retain_graph=False)\nsecond.backward()"
OF_GRADIENTS = "first.backward(create_graph=True, retain_graph=True)\nsecond.backward()"
OF_SOME = "first.backward(retain_graph=True, inputs=heads)\nsecond.backward(inputs=trunk)"


def passes(tmp_path: Path, code: str) -> int:
    file = tmp_path / "train.py"
    file.write_text(f"def step():\n{''.join(f'    {line}{chr(10)}' for line in code.splitlines())}")
    forget()
    line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if ".backward(" in text)
    return repeated_passes(str(file), line)


@pytest.mark.parametrize(
    ("code", "number"), [(LOOP, 1), (LAST, 1), (APART, 2), (SCALED, 2), (COMPREHENSION, 1)]
)
def test_passes_that_only_add_up_can_be_one(tmp_path: Path, code: str, number: int) -> None:
    assert passes(tmp_path, code) == number


@pytest.mark.parametrize(
    "code", [OWN_GRAPHS, ACCUMULATED, CLEARED, READ, ALONE, SWITCHED_OFF, OF_GRADIENTS, OF_SOME]
)
def test_passes_between_which_something_happens_are_left_alone(tmp_path: Path, code: str) -> None:
    """GIVEN graphs of their own, gradients that are cleared or read in between, gradients of gradients or of
    some weights only THEN nothing is said."""
    assert passes(tmp_path, code) == 0
