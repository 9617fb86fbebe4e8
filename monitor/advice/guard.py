"""A guard around each rule and run: a failure is named, counted and skipped; the others continue."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")
log = logging.getLogger("gpumon.advice")


class Ask(Protocol):
    """Calls one rule (or computes something for one run) and returns its answer, or `otherwise`."""

    def __call__(self, what: str, question: Callable[[], T], otherwise: T) -> T: ...


def unguarded(what: str, question: Callable[[], T], otherwise: T) -> T:
    """For callers who want to see failures."""
    return question()


class Guard:
    """Counts failures by what failed; the first of each kind is logged with its traceback."""

    def __init__(self) -> None:
        self.failures: Counter[str] = Counter()

    def ask(self, what: str, question: Callable[[], T], otherwise: T) -> T:
        try:
            return question()
        except Exception as error:
            if not self.failures[what]:
                log.warning("%s failed: %r", what, error, exc_info=error)
            self.failures[what] += 1
            return otherwise
