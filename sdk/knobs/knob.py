"""What a knob is: a name, the values it takes, what it does to the training, and how it is applied.

A knob never edits a file. It is applied in the process that trains, and says whether it came to anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

IDENTICAL, ROUNDING = "identical", "rounding"
IN_EXPECTATION, CHANGES_TRAINING = "in_expectation", "changes_training"
"""As in the advice: the same numbers; the same mathematics with other rounding; other random numbers of the
same distribution; another training."""

WAITING, APPLIED, ALREADY, REFUSED = "waiting", "applied", "already", "refused"
"""Nothing it could be applied to has come; it is in force; the script had it so; it cannot be applied."""


class Outcome:
    """What came of a knob in this process."""

    def __init__(self, why: str) -> None:
        self.state = WAITING
        self.why = why
        """Of a knob that did not come to anything; else what it changed."""

    def applied(self, what: str) -> None:
        """Once is enough: what is refused for a second loader was still applied to the first."""
        self.state, self.why = APPLIED, what

    def already(self, what: str) -> None:
        if self.state != APPLIED:
            self.state, self.why = ALREADY, what

    def refused(self, why: str) -> None:
        if self.state in (WAITING, REFUSED):
            self.state, self.why = REFUSED, why

    def as_json(self) -> dict[str, str]:
        return {"state": self.state, "why": self.why}


class Place(NamedTuple):
    """Where a knob is applied."""

    torch: Any
    steps: Callable[[], int]
    """How many steps the training has made."""
    optimizers: Callable[[], list[Any]] = list
    """Those that have stepped."""


Flip = Callable[[bool], None]
"""Switches a knob on or off in the middle of a training, between two steps."""


class Knob(ABC):
    """One setting. `apply` runs when torch has been imported, before any line of the script behind that."""

    name = ""
    effect = IDENTICAL
    takes = ""
    """Its values, for people."""
    written = ""
    """How a script says the same, with `{value}` or, for a switch, `{flag}`."""
    unless = ""
    """What makes its effect a worse one in some scripts; the losses of a trial show it."""
    needs = ""
    """What a script must do for the knob to have something to change."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The value; `ValueError` says what is wrong with it."""

    def words(self, text: str) -> str:
        """What to write in the script for this value."""
        return self.written.format(value=text, flag=text.lower() in ("on", "true", "1"))

    def before_torch(self, value: Any) -> None:  # noqa: B027 — most knobs need nothing here
        """What must be set before torch is imported."""

    @abstractmethod
    def apply(self, place: Place, value: Any, outcome: Outcome) -> Flip | None:
        """Put it in force, at once or when what it changes is made. What can be switched while the training
        runs gives its switch, which is on; the script's own choice is what it is switched back to."""

    def live(self, place: Place, value: Any, outcome: Outcome) -> Flip | None:
        """For a training that has made some steps and runs on; switched off at first. None: nothing to switch
        here. One that is `applied` has found something to change, at once or in the next steps."""
        outcome.refused("it cannot be switched while the training runs")
        return None


def attempt(outcome: Outcome, change: Callable[..., T], *args: Any) -> T | None:
    """Change something in the middle of a training, which must not end for it."""
    try:
        return change(*args)
    except Exception as error:  # noqa: BLE001 — whatever it is, the script goes on as it was
        outcome.refused(f"{type(error).__name__}: {error}")
        return None


def switched_on(flip: Flip | None) -> Flip | None:
    """The same, on from now."""
    if flip is not None:
        flip(True)
    return flip


class Switch(Knob):
    """On or off."""

    takes = "on, off"
    only: bool | None = None
    """The only value it takes, where the other one makes no sense."""

    def read(self, text: str) -> bool:
        known = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
        if text.lower() not in known:
            raise ValueError(f"{self.name} is on or off, not {text}")
        value = known[text.lower()]
        if self.only is not None and value is not self.only:
            raise ValueError(f"{self.name} can only be switched {'on' if self.only else 'off'}")
        return value


class Number(Knob):
    """A whole number."""

    least = 0
    most = 1 << 20

    def read(self, text: str) -> int:
        if not text.isdecimal() or not self.least <= int(text) <= self.most:
            raise ValueError(f"{self.name} is a whole number of at least {self.least}, not {text}")
        return int(text)


def no_accelerator(place: Place, outcome: Outcome) -> bool:
    """Refuses what only concerns an accelerator where there is none."""
    if place.torch.cuda.is_available():
        return False
    outcome.refused("torch sees no CUDA device here")
    return True
