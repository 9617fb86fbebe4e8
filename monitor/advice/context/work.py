"""A piece of the loop's work as described by the SDK: its cost including its calls, and whether steps need
it.

A ring may contain anything: whatever is not a piece of work is dropped here, so that no rule has to check
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os.path import basename
from typing import Any

VALIDATE, UNNAMED = "validate", ("between", "other")
"""The phase of evaluation, and those that no mark of the loop names."""
UNUSED = "metrics"
"""The job of work whose result no step needs and that calls no library function known for a job."""
LONGEST_SHOWN = 70
"""Characters of a code line shown in a sentence."""
SHARE_LIMIT = 1.5
"""A share is a ratio of two counts and may come out slightly above 1; beyond this it is invalid."""
FEW_STEPS = 6
"""With fewer sampled steps than this, how often something is done cannot be said."""
MOST_LINES, MOST_LETTERS = 16, 200
"""Limits for a piece of source."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of the user's source, each as (indentation relative to the first line, text)."""

    file: str
    line: int
    text: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Hoist:
    """A call that can be made once before the loop."""

    code: str
    call: str
    loop_line: int
    loop: str


@dataclass(frozen=True, slots=True)
class Work:
    """One or more statements of the loop, including everything called from there, in one phase."""

    phase: str
    function: str
    file: str
    line: int
    code: str
    share: float
    """Of its phase."""
    needed: str
    """yes, no or unknown: whether the update, the next step or anything leading to them uses the result."""
    job: str = ""
    api: str = ""
    """The library function that reveals the job."""
    feeds: bool = False
    """The loss is computed from its result; what only decides when to stop feeds nothing."""
    module: bool = False
    """Most of it is a pass of a torch module."""
    grad: bool = False
    """Part of what `backward()` passes through."""
    no_grad: bool = False
    in_forward: bool = False
    constant: bool = False
    random: bool = False
    carried: bool = False
    """Its new value is computed from the old one: a running average, a total."""
    pure: bool = False
    """It changes no object: it only makes what it returns."""
    moves: bool = False
    """It makes moves in an environment, in their turn."""
    blocking: bool = False
    steps: int = 0
    steps_seen: int = 0
    guard: Lines | None = None
    """The lines, if they can be moved under `if counter % n == 0:`."""
    counter: str = ""
    within: int = 1
    """They already run only where a counter is a multiple of this."""
    hoist: Hoist | None = None
    hot: tuple[str, int] | None = None
    """(file, line) where most of it is spent."""

    @property
    def place(self) -> str:
        return f"{basename(self.file)}:{self.line}"

    @property
    def every(self) -> float | None:
        """Approximate number of steps between two occurrences, as sampled; None if unknown."""
        if self.steps < FEW_STEPS or not self.steps_seen:
            return None
        return max(1.0, self.steps / self.steps_seen)

    @property
    def text(self) -> str:
        """`x = self.scaler.transform(x)` (train.py:41, in `Trainer.step`)."""
        owner = f", in `{self.function}`" if self.function and self.function != "<module>" else ""
        shown = self.code if len(self.code) <= LONGEST_SHOWN else self.code[: LONGEST_SHOWN - 1] + "…"
        return f"`{shown}` ({self.place}{owner})"


def whole_evaluations(pieces: Iterable[Work]) -> list[Work]:
    """A call that evaluates is evaluation from beginning to end: reading the total on its last line is in no
    phase of its own, but goes with the rest."""
    pieces = list(pieces)
    evaluating = {(one.file, one.line) for one in pieces if one.phase == VALIDATE and one.needed == "no"}
    return [
        replace(one, job=VALIDATE)
        if (one.file, one.line) in evaluating and one.phase in UNNAMED and one.job in ("", UNUSED)
        else one
        for one in pieces
    ]


def work(item: Any) -> Work | None:
    """A piece of work of the probe, or None if it is not one."""
    if not isinstance(item, Mapping):
        return None
    share, line = item.get("share"), item.get("line")
    if not isinstance(share, int | float) or not 0 < share <= SHARE_LIMIT or not isinstance(line, int):
        return None
    file = str(item.get("file", ""))
    guard = item.get("guard")
    flags = (
        *("feeds", "module", "grad", "no_grad", "in_forward"),
        *("constant", "random", "carried", "pure", "moves", "blocking"),
    )
    return Work(
        phase=str(item.get("phase", "")),
        function=str(item.get("function", "")),
        file=file,
        line=line,
        code=_text(item.get("code")),
        share=min(1.0, float(share)),
        needed=str(item.get("needed") or "unknown"),
        job=_text(item.get("job")),
        api=_text(item.get("api")),
        steps=_count(item.get("steps")),
        steps_seen=_count(item.get("steps_seen")),
        guard=lines(file, guard),
        counter=_text(guard.get("counter")) if isinstance(guard, Mapping) else "",
        within=max(1, _count(guard.get("within"))) if isinstance(guard, Mapping) else 1,
        hoist=_hoist(item.get("hoist")),
        hot=_hot(item.get("hot")),
        **{name: item.get(name) is True for name in flags},
    )


def lines(file: str, raw: Any) -> Lines | None:
    """Source lines in the probe's format: {"line": …, "lines": [[spaces, text], …]}."""
    if not isinstance(raw, Mapping) or not isinstance(raw.get("lines"), list):
        return None
    pairs = [one for one in raw["lines"] if isinstance(one, list) and len(one) == 2]
    found = tuple(
        (spaces, text) for spaces, text in pairs if isinstance(spaces, int) and isinstance(text, str)
    )
    whole = len(found) == len(raw["lines"]) and 0 < len(found) <= MOST_LINES
    return Lines(file, _count(raw.get("line")), found) if whole else None


def _hoist(raw: Any) -> Hoist | None:
    if not isinstance(raw, Mapping) or not all(
        isinstance(raw.get(key), str) for key in ("code", "call", "loop")
    ):
        return None
    return Hoist(raw["code"].strip(), raw["call"], _count(raw.get("loop_line")), raw["loop"].strip())


def _hot(raw: Any) -> tuple[str, int] | None:
    known = isinstance(raw, Mapping) and isinstance(raw.get("line"), int)
    return (str(raw.get("file", "")), raw["line"]) if known else None


def _text(value: Any) -> str:
    return value[:MOST_LETTERS] if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
