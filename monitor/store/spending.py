"""How much of each user's data goes into the history: there is a limit per minute, and once it is reached the
largest spender is cut first. Nobody is cut below a fair share. What cannot be kept at all is counted."""

from __future__ import annotations

import logging
import time
from collections import Counter

from monitor.model.owner import OTHER_OWNERS, RingCount, user_name
from monitor.model.units import size

log = logging.getLogger("gpumon.store")

MINUTE = 60.0
MINUTE_BYTES = 16 << 20
"""Steps of 64 ranks at 100 a second need about a third of this."""
MAX_KEPT = 1024
"""Owners distinguished in what was cut: somebody with a range of uids could create any number."""
REASON = "history"
UNWRITABLE = "row"


class Spending:
    def __init__(self, limit: int = MINUTE_BYTES) -> None:
        self.limit = limit
        self._begun = float("-inf")
        self._spent: Counter[int] = Counter()
        """Owner → bytes in the current minute."""
        self._cut: Counter[int] = Counter()
        """Owner → what was not kept since the start."""
        self._said: set[int] = set()
        self._refused: Counter[int] = Counter()
        """Owner → rows that could not be written."""
        self._why: dict[int, str] = {}

    def allows(self, owner: int, wanted: int, count: int = 1) -> bool:
        """Whether this many bytes may be stored; if not, `count` steps or runs are noted as cut."""
        now = time.monotonic()
        if now - self._begun >= MINUTE:
            self._begun, self._spent = now, Counter()
            self._said.clear()
        share = self.limit // len(self._spent.keys() | {owner})
        if self._spent.total() + wanted <= self.limit or self._spent[owner] + wanted <= share:
            self._spent[owner] += wanted
            return True
        self._cut[_known(owner, self._cut)] += count
        self._say(owner)
        return False

    def _say(self, owner: int) -> None:
        if owner in self._said:
            return
        self._said.add(owner)
        log.warning(
            "history of %s is being cut: it exceeds a fair share of %s per minute",
            user_name(owner),
            size(self.limit),
        )

    def refuse(self, owner: int, why: str) -> None:
        """A row of this owner cannot be written; only the first is logged."""
        owner = _known(owner, self._refused)
        if owner not in self._refused:
            log.warning("history of %s: a run cannot be stored: %s", user_name(owner), why)
        self._refused[owner] += 1
        self._why[owner] = why

    def trouble(self) -> tuple[RingCount, ...]:
        """What was cut, by owner."""
        example = f"more than a fair share of {size(self.limit)} a minute"
        cut = [RingCount(uid, user_name(uid), REASON, count, example) for uid, count in self._cut.items()]
        refused = [
            RingCount(uid, user_name(uid), UNWRITABLE, count, self._why[uid])
            for uid, count in self._refused.items()
        ]
        return tuple(sorted(cut + refused, key=lambda one: (one.owner_uid, one.reason)))


def _known(owner: int, counted: Counter[int]) -> int:
    """The owner, or "others" once there are too many to keep apart."""
    return owner if owner in counted or len(counted) < MAX_KEPT else OTHER_OWNERS
