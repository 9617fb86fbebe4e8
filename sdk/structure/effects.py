"""What one statement reads, binds and changes, including through the user's own functions.

A place is a name in its scope or an attribute of `self`, as text: "train.py:fit|loss", "train.py:Net.self|w".
What a call does is known for the user's functions (their statements are read), for the libraries in the
tables, and for methods of tensors and containers; anything unknown is marked as such, never ignored.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .source import Function, Scope, Source

RESULT = "return"
"""The place of what a function returns; not a valid Python name."""


@dataclass(slots=True)
class Effect:
    """What a statement does."""

    node: ast.stmt
    source: Source
    scope: Scope
    reads: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    """Objects it certainly changes."""
    maybe: set[str] = field(default_factory=set)
    """Objects that a call to unknown code may change."""
    update: bool = False
    """Part of the update itself: backward, the optimizer, clipping."""
    moves: bool = False
    """Makes a move in an environment: what comes later follows from it."""
    leads: list[tuple[ast.Call, Source, Function]] = field(default_factory=list)
    """Calls to the user's own functions that contain the update."""
    opaque: bool = False
    """Calls something unknown for its effect."""
    leaves: bool = False
    """Ends the function, the loop or one of its iterations."""
    gradients: bool = False
    """Reads `.grad`."""
    optimizes: bool = False
    """Creates an optimizer: what it reads are the parameters."""
    parameters: bool = False
    """Creates tensors that get gradients: what it binds are parameters."""
    carries: set[str] = field(default_factory=set)
    """Objects whose new value depends on the old one: a running average, a total."""
    apis: set[str] = field(default_factory=set)

    @property
    def writes(self) -> set[str]:
        return self.binds | self.changes


@dataclass(slots=True)
class Summary:
    """What a user function does, seen from a caller."""

    places: str = ""
    """The prefix of its own places."""
    names: list[str] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    update: bool = False
    moves: bool = False
    opaque: bool = False
    gradients: bool = False
    carries: set[str] = field(default_factory=set)
    apis: set[str] = field(default_factory=set)


def place_prefix(source: Source, scope: Scope) -> str:
    name = source.names.get(scope, "") if isinstance(scope, Function) else ""
    return f"{source.file}:{name}"
