"""Predicted versus realised: which findings of run A are gone in run B, and what each remedy gained.

A finding can disappear because its own remedy was applied, because another made it pointless, or because the
neighbours left. A gain is credited only if both runs finished, one after the other, and did the same work, a
remedy was *seen* to be applied, and the change exceeds noise. Otherwise the finding is just no longer seen,
and the reason is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from monitor.comparison.applied import applied
from monitor.comparison.arguments import made_by_remedy
from monitor.comparison.difference import Difference, Trouble
from monitor.model.finding import SERIOUS, Finding, Speedup
from monitor.model.run import Run

PROMISING = 1.03
"""A finding that promised less than this cannot have made the difference."""

NotCredited = Literal[
    "not_ended",
    "same_time",
    "b_before_a",
    "other_work",
    "other_arguments",
    "unchanged",
    "cannot_tell",
    "too_short",
    "noise",
    "no_promise",
]
REASONS: dict[NotCredited, str] = {
    "not_ended": "one of the runs did not finish",
    "same_time": "the two ran at the same time",
    "b_before_a": "B ran before A",
    "other_work": "the two did different work",
    "other_arguments": "other arguments differ as well",
    "unchanged": "its remedy was not applied",
    "cannot_tell": "it is unknown whether its remedy was applied",
    "too_short": "too little was measured to be sure of the change",
    "noise": "no change beyond noise",
    "no_promise": "it promised no gain",
}
"""Why a finding's disappearance proves nothing, as a clause."""


class Realised(msgspec.Struct, frozen=True):
    """A finding of A that is gone in B."""

    id: str
    title: str
    rank: int | None
    gpu: str | None
    predicted: Speedup | None
    realised: float | None
    """The speed-up, if this is the only remedy seen to be applied; if there were several, a part of it in
    proportion to what each promised; None if it is not credited."""
    shared: bool
    """True if `realised` is such a part: a division, not a measurement."""
    inside: bool | None
    """Whether it agrees with low…high, given the interval of the measurement."""
    changed: str = ""
    """The observed difference: "loader.num_workers 0 → 4"."""
    not_credited: NotCredited | None = None

    @property
    def reason(self) -> str:
        """Why it is not credited, as a clause; empty if it is."""
        return REASONS[self.not_credited] if self.not_credited else ""


class Measured(NamedTuple):
    """What a comparison measured: B's rate relative to A's, its interval and the noise."""

    speedup: float | None
    low: float | None
    high: float | None
    noise: float

    @property
    def certain(self) -> bool:
        """Whether the interval rules out that nothing changed."""
        if self.speedup is None or self.low is None or self.high is None:
            return False
        return abs(self.speedup - 1.0) > self.noise and not self.low <= 1.0 <= self.high


def _key(finding: Finding) -> tuple[str, int | None]:
    return finding.id, finding.rank


def fates(
    before: Sequence[Finding], after: Sequence[Finding]
) -> tuple[list[Finding], list[Finding], list[Finding]]:
    """Findings of A that are gone in B, that remain, and that are new in B."""
    faults = [finding for finding in before if finding.severity != "healthy"]
    later = [finding for finding in after if finding.severity != "healthy"]
    then, now = {_key(finding) for finding in faults}, {_key(finding) for finding in later}
    gone = [finding for finding in faults if _key(finding) not in now]
    remaining = [finding for finding in faults if _key(finding) in now]
    return gone, remaining, [finding for finding in later if _key(finding) not in then]


def realise(
    gone: Sequence[Finding],
    runs: tuple[Run, Run],
    measured: Measured,
    differences: Sequence[Difference],
    troubles: Sequence[Trouble],
) -> tuple[Realised, ...]:
    """What each vanished finding gained, or why that cannot be said."""
    doubt = _doubt(*runs, measured, troubles)
    refused = {finding.key: doubt or _refused(finding, *runs, differences) for finding in gone}
    credited = [finding for finding in gone if refused[finding.key] is None]
    return tuple(_realised(finding, runs, measured, refused[finding.key], credited) for finding in gone)


def _doubt(a: Run, b: Run, measured: Measured, troubles: Sequence[Trouble]) -> NotCredited | None:
    """Why the whole comparison proves nothing, if so."""
    if troubles or a.state != "ended" or b.state != "ended":
        return "not_ended"
    if a.ended is not None and a.ended > b.started:
        return "b_before_a" if b.ended is not None and b.ended <= a.started else "same_time"
    if measured.low is None or measured.high is None:
        return "too_short"
    return None if measured.certain else "noise"


def _refused(finding: Finding, a: Run, b: Run, differences: Sequence[Difference]) -> NotCredited | None:
    """Why this finding's remedy gets no credit; None if it, and nothing else, was seen to be applied."""
    if _likely(finding) < PROMISING:
        return "no_promise"
    own = {"arguments"} | ({"batch_size"} if "loader.batch_size" in finding.remedy.settings else set())
    if any(one.kind not in own for one in differences):
        return "other_work"
    seen = applied(finding, a, b).seen
    if not seen:
        return "cannot_tell" if seen is None else "unchanged"
    return None if made_by_remedy(finding, a, b) else "other_arguments"


def _realised(
    finding: Finding,
    runs: tuple[Run, Run],
    measured: Measured,
    refused: NotCredited | None,
    credited: Sequence[Finding],
) -> Realised:
    got: float | None = None
    if refused is None and measured.speedup is not None:
        part = math.log(_likely(finding)) / sum(math.log(_likely(one)) for one in credited)
        got = measured.speedup**part
    shared = got is not None and len(credited) > 1
    return Realised(
        id=finding.id,
        title=finding.title,
        rank=finding.rank,
        gpu=finding.gpu,
        predicted=finding.speedup,
        realised=got,
        shared=shared,
        inside=_inside(finding.speedup, got, None if shared else measured),
        changed=applied(finding, *runs).what,
        not_credited=refused,
    )


def _inside(predicted: Speedup | None, got: float | None, measured: Measured | None) -> bool | None:
    if predicted is None or got is None:
        return None
    low, high = (measured.low, measured.high) if measured is not None else (None, None)
    return agrees(predicted.low, predicted.high, got, low, high)


def agrees(least: float, most: float, got: float, low: float | None, high: float | None) -> bool:
    """Whether the measurement, with its own interval, overlaps the predicted range."""
    return least <= (high if high is not None else got) and (low if low is not None else got) <= most


def _likely(finding: Finding) -> float:
    return finding.speedup.likely if finding.speedup is not None else 1.0


def together(gone: Sequence[Finding], a: Run, remaining: Sequence[Finding]) -> Speedup | None:
    """The predicted gain of all remedies in run A, if all findings are gone; None if some remain, since gains
    of single remedies can be neither added nor multiplied."""
    if len(gone) < 2 or any(finding.severity in SERIOUS for finding in remaining):
        return None
    return a.combined
