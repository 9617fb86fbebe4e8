"""Functions that return the same in every step are distinguished from those that do not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sdk.sampling._hot_lines import HotLines, Sample
from sdk.sampling._return_values import ReturnValues, fingerprint
from sdk.structure.places import Place
from sdk.structure.source import forget

torch = pytest.importorskip("torch")


def watched(function: Callable[[int], Any], steps: int = 4) -> bool:
    returned = ReturnValues()
    for step in range(steps):
        returned.returned(function.__code__, function(step))
        returned.step()
    code = function.__code__
    return returned.constant(code.co_filename, code.co_firstlineno, code.co_name)


def test_the_same_array_in_every_step_is_a_constant() -> None:
    def mask(step: int) -> Any:
        return torch.ones(4, 4).triu()

    def batch(step: int) -> Any:
        return torch.full((4,), step)

    assert watched(mask) and not watched(batch)
    assert not watched(mask, steps=1), "nothing to compare it with"


def test_what_says_nothing_is_no_constant() -> None:
    weights = torch.ones(3, requires_grad=True)
    assert not watched(lambda step: 3.0)
    assert not watched(lambda step: None)
    assert not watched(lambda step: weights * 2)


def test_fingerprints_stand_for_values() -> None:
    a = torch.arange(12.0).reshape(3, 4)
    assert fingerprint(a) == fingerprint(a.clone()) != fingerprint(a + 1)
    assert fingerprint((a, 1)) == fingerprint((a.clone(), 1)) != fingerprint((a, 2))
    assert fingerprint({"x": a}) == fingerprint({"x": a.clone()})
    assert fingerprint(a.to(torch.bfloat16)) is not None
    assert fingerprint(torch.ones(1).expand(10**12)) is None, "never made real"
    assert fingerprint("a") is None and fingerprint([1, 2]) is None
    if numpy := sys.modules.get("numpy"):
        assert fingerprint(numpy.ones(5)) == fingerprint(numpy.ones(5)) != fingerprint(numpy.zeros(5))


def test_functions_that_compute_in_float64() -> None:
    """GIVEN functions that return float64, complex numbers of as many bytes, float32 or a float64 from which
    nothing is learnt THEN only the first is one."""
    weights = torch.ones(3, requires_grad=True)
    grid = torch.ones(3, dtype=torch.float64)
    cases = {
        "double": lambda: (1, weights * grid),
        "complex": lambda: torch.complex(weights, weights),
        "single": lambda: weights * 2,
        "table": lambda: grid * 2,
    }
    found = {}
    for name, function in cases.items():
        returned = ReturnValues()
        returned.returned(function.__code__, function())
        code = function.__code__
        found[name] = returned.double(code.co_filename, code.co_firstlineno, code.co_name)
    assert found == {"double": True, "complex": False, "single": False, "table": False}


def test_functions_from_which_nothing_is_learnt() -> None:
    """GIVEN functions that return indices, a loss, both, or no tensor THEN only from the first is nothing
    learnt."""
    weights = torch.ones(3, requires_grad=True)

    def indices(step: int) -> Any:
        return (weights * step).argmax(), 3

    def loss(step: int) -> Any:
        return weights.sum() * step

    def both(step: int) -> Any:
        return [indices(step)[0], loss(step)]

    def nothing(step: int) -> Any:
        return step

    def detached(function: Callable[[int], Any]) -> bool:
        returned = ReturnValues()
        for step in range(3):
            returned.returned(function.__code__, function(step))
        code = function.__code__
        return returned.detached(code.co_filename, code.co_firstlineno, code.co_name)

    assert detached(indices)
    assert not any(map(detached, (loss, both, nothing)))


SCRIPT = """\
def choose(rows):
    for row in rows:
        found = row.argmax()
    return found

def cost(rows):
    near = choose(rows)
    return rows[near].sum()

def train(rows, optimizer):
    for step in range(9):
        loss = cost(rows)
        loss.backward()
        optimizer.step()
"""


def test_lines_of_functions_from_which_nothing_is_learnt(tmp_path: Path) -> None:
    """GIVEN a loss that calls a function which returns an index THEN that function's lines are detached, the
    loss's own are not, nor are those of a loop that returns nothing."""
    file = tmp_path / "pairs.py"
    file.write_text(SCRIPT)
    names: dict[str, Any] = {}
    exec(compile(SCRIPT, str(file), "exec"), names)
    weights = torch.ones(2, 3, requires_grad=True)
    lines = HotLines()
    for name in ("choose", "cost"):
        lines.return_values.returned(names[name].__code__, names[name](weights))
    stack = [Place(str(file), at, name) for at, name in ((3, "choose"), (7, "cost"), (12, "train"))]
    back = Place(str(file), 13, "train")
    for _ in range(8):
        lines.count([Sample("forward", tuple(stack[at:]), 10**6, 10**6) for at in (0, 1)])
        lines.count([Sample("backward", (back,), 10**6, 10**6)])
    forget()
    spots = {one["line"]: one for one in lines.evaluate()["hotspots"]}
    assert spots[3]["detached"] is True and "detached" not in spots[7]


VIEWS = """\
import numpy as np
import torch

def rays(pose):
    return torch.ones(4, 4) * pose

def draw(poses):
    view = np.random.choice(len(poses))
    return rays(poses[view])

def look(poses):
    return rays(poses[0])

def train(poses, weights, optimizer):
    place = torch.rand(4)
    for step in range(10):
        loss = (draw(poses) + look(poses)).sum() * weights.sum()
        loss = loss + rays(place)
        other = torch.rand(4)
        loss = loss * rays(other)
        loss.backward()
        optimizer.step()
"""


def test_what_is_called_with_a_draw_is_no_constant_though_it_may_return_the_same(tmp_path: Path) -> None:
    """GIVEN a function that returned the same in the few steps that were profiled THEN where it is called
    with what was drawn in the step that is chance, and elsewhere a constant."""
    file = tmp_path / "views.py"
    file.write_text(VIEWS)
    names: dict[str, Any] = {}
    exec(compile(VIEWS, str(file), "exec"), names)
    lines = HotLines()
    for _ in range(3):
        lines.return_values.returned(names["rays"].__code__, names["rays"](2.0))
        lines.return_values.step()

    def constant(*calls: tuple[int, str]) -> str:
        stack = [Place(str(file), at, of) for at, of in ((5, "rays"), *calls)]
        back = Place(str(file), 21, "train")
        lines.forget()
        for _ in range(8):
            lines.count(
                [Sample("between", tuple(stack), 10**6, 10**6), Sample("backward", (back,), 10**6, 10**6)]
            )
        forget()
        spot = next(one for one in lines.evaluate()["hotspots"] if one["line"] == 5)
        return str(spot.get("constant", ""))

    assert constant((9, "draw"), (17, "train")) == "" and constant((12, "look"), (17, "train")) == "rays"
    assert constant((18, "train")) == "rays", "drawn once, before the steps"
    assert constant((20, "train")) == ""


def test_what_agreed_by_chance_in_a_few_steps_shows_in_the_next_ones() -> None:
    """GIVEN a function that returned the same twice WHEN some more steps are profiled and it returns another
    THEN it is no constant."""

    def view(step: int) -> Any:
        return torch.full((4,), 1 if step < 3 else step)

    returned, code = ReturnValues(), view.__code__
    known = []
    for steps in ((0, 1), (2, 3)):
        returned.go_on()
        for step in steps:
            returned.returned(code, view(step))
            returned.step()
        known.append(returned.constant(code.co_filename, code.co_firstlineno, code.co_name))
    assert known == [True, False]
