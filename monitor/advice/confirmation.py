"""Shows a live run's finding once it has lasted, and keeps it for a while after it is gone. Its figures
change only when the new range excludes the previous estimate, or more is known than before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from monitor.advice.judging import Judged
from monitor.model.finding import FindingKey, Speedup
from monitor.model.policy import Policy


@dataclass(slots=True)
class Held:
    """How long a finding has been there, and how long it has been gone."""

    judged: Judged
    """As shown."""
    latest: Judged
    """As last judged: the same again changes nothing."""
    since: float
    seen: int = 1
    missed: int = 0
    shown: bool = False


class Confirmation:
    """Remembers findings from tick to tick."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._held: dict[FindingKey, Held] = {}

    def forget(self, present: Collection[str]) -> None:
        """Forget runs that are no longer in view."""
        self._held = {key: held for key, held in self._held.items() if key[1] is None or key[1] in present}

    def update(
        self, found: Sequence[Judged], now: float, over: Collection[str], resting: Collection[str | None] = ()
    ) -> list[Judged]:
        """What to show: a finding after `confirm_ticks` in a row, until `clear_ticks` without. Finished runs
        are not evaluated again, so their findings appear and disappear at once; critical ones also appear at
        once. For runs not evaluated this time (`resting`; None: the machine), nothing counts as seen or
        missed."""
        for judged in found:
            if judged.finding.run not in resting:
                self._see(judged, now, over)
        present = {judged.finding.key for judged in found}
        for key in [key for key in self._held if key not in present and key[1] not in resting]:
            self._miss(key, over)
        return [held.judged for held in self._held.values() if held.shown]

    @property
    def settled(self) -> bool:
        """Whether every finding about the machine is shown, and none is about to go."""
        about = [held for key, held in self._held.items() if key[1] is None]
        return all(held.shown and not held.missed for held in about)

    def _see(self, judged: Judged, now: float, over: Collection[str]) -> None:
        held = self._held.get(judged.finding.key)
        if held is None:
            held = self._held[judged.finding.key] = Held(since(judged, now), judged, now)
        else:
            held.seen, held.missed = held.seen + 1, 0
            if judged is not held.latest:
                still = judged.finding.run not in over and is_still(judged, held.judged)
                held.judged = held.judged if still else since(judged, held.since)
                held.latest = judged
        at_once = judged.finding.run in over or judged.finding.severity == "critical"
        held.shown = held.shown or at_once or held.seen >= self._policy.confirm_ticks

    def _miss(self, key: FindingKey, over: Collection[str]) -> None:
        held = self._held[key]
        held.missed += 1
        held.seen = 0
        if not held.shown or held.missed >= self._policy.clear_ticks or key[1] in over:
            del self._held[key]


def is_still(judged: Judged, before: Judged) -> bool:
    """Whether the finding may be shown as before: the new range still includes its gain and nothing more is
    known (the line it is about is only found some seconds later)."""
    new, old = judged.finding, before.finding
    more = new.evidence.keys() - old.evidence.keys()
    return is_steady(new.speedup, old.speedup) and not more


def is_steady(new: Speedup | None, old: Speedup | None) -> bool:
    """Whether the new gain's uncertainty includes the old one. A limit may have cut off the range above, so
    the uncertainty upwards is at least that downwards."""
    if new is None or old is None:
        return False
    return new.low <= old.likely <= max(new.high, new.likely * new.likely / new.low)


def since(judged: Judged, time: float) -> Judged:
    """The same finding, first seen at `time`."""
    return replace(judged, finding=changed(judged.finding, since=time))
