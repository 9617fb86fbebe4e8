"""Problems with rings, counted by owner and reason; each is logged once and never affects other owners."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Literal

from monitor.model.owner import OTHER_OWNERS, RingCount, user_name

log = logging.getLogger("gpumon.runs")

Reason = Literal[
    "broken", "duplicate", "ended", "files", "folder", "listing", "names", "not_a_file", "records", "rings",
    "run", "size", "unexpected", "unreadable",
]  # fmt: skip
MEANINGS: dict[Reason, str] = {
    "broken": "not a ring, or one that went bad",
    "duplicate": "a second name for a ring that is being read",
    "ended": "a finished run left the view early: too many of them",
    "files": "a dead ring was removed early: too many of them, or too little space",
    "folder": "a folder that cannot be trusted",
    "listing": "a folder that could not be listed",
    "names": "a name beyond its owner's quota, to be looked at later",
    "not_a_file": "not a file",
    "records": "complete records that make no sense",
    "rings": "a ring that had to wait for room",
    "run": "a run that could not be put together",
    "size": "of a size that no ring has",
    "unexpected": "a mistake of gpumon's own, brought out by this ring",
    "unreadable": "it cannot be read",
}

MAX_KEPT = 1024
"""Pairs of owner and reason kept apart: somebody with a range of uids could create any number."""
_EXAMPLE = 200


class Trouble:
    """Only grows. The first problem of a kind from each owner is logged, the rest are counted."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, Reason]] = Counter()
        self._examples: dict[tuple[int, Reason], str] = {}

    def note(self, owner: int, reason: Reason, example: str, count: int = 1) -> None:
        if count <= 0:
            return
        key = (owner, reason)
        if key not in self._counts and len(self._counts) >= MAX_KEPT:
            key = (OTHER_OWNERS, reason)
        if key not in self._counts:
            log.warning("rings of %s: %s (%s): %s", _user(key[0]), reason, MEANINGS[reason], _plain(example))
        self._counts[key] += count
        self._examples[key] = _plain(example)

    def counts(self) -> tuple[RingCount, ...]:
        return tuple(
            RingCount(owner, _user(owner), reason, count, self._examples[owner, reason])
            for (owner, reason), count in sorted(self._counts.items())
        )

    def totals(self) -> Counter[str]:
        """Reason → how many, over all owners."""
        found: Counter[str] = Counter()
        for (_, reason), count in self._counts.items():
            found[reason] += count
        return found


def _user(owner: int) -> str:
    return "others" if owner == OTHER_OWNERS else user_name(owner)


def _plain(text: str) -> str:
    """Strangers' file names and claims, made fit for a log: no control characters, no lone surrogates."""
    shown = "".join(char if char.isprintable() else "?" for char in text[:_EXAMPLE])
    return shown.encode("utf-8", "replace").decode()
