"""What one statement reads, binds and changes, including through the user's own functions.

A place is a name in its scope or an attribute of `self`, as text: "train.py:fit|loss", "train.py:Net.self|w".
What a call does is known for functions of the user's (their statements are read), for the libraries in the
tables, and for methods of tensors and containers; what is unknown is marked as such, never ignored.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from .source import Function, Scope, Source

RESULT = "return"
"""The place of what a function returns; no name of Python's."""


@dataclass(slots=True)
class Effect:
    """What a statement does."""

    node: ast.stmt
    source: Source
    scope: Scope
    reads: set[str] = field(default_factory=set)
    binds: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    """Objects it changes for certain."""
    maybe: set[str] = field(default_factory=set)
    """Objects that a call of unknown code may change."""
    update: bool = False
    """Part of the update itself: backward, the optimizer, clipping, the environment's next step."""
    leads: list[tuple[ast.Call, Source, Function]] = field(default_factory=list)
    """Calls of the user's own functions in which the update is."""
    opaque: bool = False
    """Calls something for its effect of which nothing is known."""
    leaves: bool = False
    """Ends the loop or the function, or a round of it."""
    gradients: bool = False
    """Reads `.grad`."""
    optimizes: bool = False
    """Makes an optimizer: what it reads are the parameters."""
    carries: set[str] = field(default_factory=set)
    """Objects whose new value is made from their old one: a running average, a total."""
    apis: set[str] = field(default_factory=set)

    @property
    def writes(self) -> set[str]:
        return self.binds | self.changes


@dataclass(slots=True)
class Summary:
    """What a function of the user's does, seen from a caller."""

    places: str = ""
    """How its own places begin."""
    names: list[str] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    update: bool = False
    opaque: bool = False
    gradients: bool = False
    carries: set[str] = field(default_factory=set)
    apis: set[str] = field(default_factory=set)


def place_prefix(source: Source, scope: Scope) -> str:
    name = source.names.get(scope, "") if isinstance(scope, Function) else ""
    return f"{source.file}:{name}"
