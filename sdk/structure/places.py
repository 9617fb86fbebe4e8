"""A place in the user's code, a sampled stack of such places, and what the interpreter revealed about lines.

Created while a step is being watched: nothing here needs the syntax tree.
"""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A call on a stack."""

    file: str
    line: int
    name: str
    module: bool = False
    """A torch module was called from here."""


class Path:
    """A call stack of user frames, innermost first, and what was seen of it."""

    __slots__ = ("cpu", "entered", "frames", "innermost", "inside", "loose", "ns", "phase", "steps")

    def __init__(self, phase: str, frames: tuple[Place, ...], loose: bool = False) -> None:
        self.phase = phase
        self.frames = frames
        self.loose = loose
        """The time may have been spent on another line of the innermost function."""
        self.ns = self.cpu = 0
        """Nanoseconds in total, and on a core."""
        self.steps: set[int] = set()
        """Sampled steps in which it was seen."""
        self.entered: dict[str, int] = {}
        """Library function called from the innermost frame → ns."""
        self.innermost: dict[str, int] = {}
        """Name of the function the thread was in, if not the user's → ns."""
        self.inside = 0
        """How many frames, from the innermost, belong to one piece of work (`work`)."""

    @property
    def sure(self) -> tuple[Place, ...]:
        """The frames whose line is known."""
        return self.frames[1:] if self.loose else self.frames

    @property
    def own(self) -> tuple[Place, ...]:
        return self.frames[: self.inside]


class Seen:
    """What the interpreter itself revealed about lines, in the few profiled steps."""

    __slots__ = ("called", "grad")

    def __init__(self) -> None:
        self.called: dict[tuple[str, int], dict[str, str]] = {}
        """Library functions a line called: short name → dotted name."""
        self.grad: dict[tuple[str, int], bool] = {}
        """Whether gradients were recorded when a line called a torch module."""
