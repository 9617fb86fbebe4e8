"""A remedy seen at work inside one live run: a finding goes, and the pace changes for good.

Throttling that ends, a neighbour that leaves the GPU, a cache that has filled: no second run is needed
to see what that gained. A finding that goes without a change of pace proves nothing and is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from monitor.compare import LEAST_NOISE
from monitor.pace import Stretch, Unit, has_samples, interval_of, noise_of, rate, ratio, stretches_of
from monitor.realised import PROMISING
from monitor.snapshot import Finding, Run, Snapshot

WAIT_SECONDS = 60.0
"""How long a finding must be gone before the pace after it is judged."""
Key = tuple[str, str, int | None, str | None]


@dataclass(slots=True)
class _Seen:
    finding: Finding
    gone: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What one finding's going brought."""

    run: Run
    finding: Finding
    ratio: float
    low: float
    high: float


class Changes:
    """Remembers the promising findings of live runs between ticks."""

    def __init__(self) -> None:
        self._seen: dict[Key, _Seen] = {}

    def update(self, snapshot: Snapshot) -> list[Change]:
        """Findings that have been gone for a while, with a pace that is surely another."""
        live = {run.id: run for run in snapshot.runs if run.state == "running"}
        present = {_key(one): one for one in snapshot.findings if one.run in live and _promises(one)}
        self._seen = {key: seen for key, seen in self._seen.items() if key[0] in live}
        for key, finding in present.items():
            self._seen[key] = _Seen(finding)
        for key, seen in self._seen.items():
            if key not in present and seen.gone is None:
                seen.gone = snapshot.time
        return self._ripe(live, snapshot.time)

    def _ripe(self, live: dict[str, Run], now: float) -> list[Change]:
        found: list[Change] = []
        for key, seen in list(self._seen.items()):
            if seen.gone is None or now - seen.gone < WAIT_SECONDS:
                continue
            del self._seen[key]
            alone = not any(other.gone for k, other in self._seen.items() if k[0] == key[0])
            change = judge(live[key[0]], seen.finding, seen.gone) if alone else None
            if change is not None:
                found.append(change)
        return found


def judge(run: Run, finding: Finding, moment: float) -> Change | None:
    """The pace after `moment` against the pace while the finding was there; None unless it surely changed."""
    before, after = _around(run, finding.since or run.started, moment)
    low, high = interval_of(before, after)
    speedup = ratio(rate(before), rate(after))
    if speedup is None or low is None or high is None:
        return None
    noise = max(LEAST_NOISE, noise_of(before), noise_of(after))
    if abs(speedup - 1.0) <= noise or low <= 1.0 <= high:
        return None
    return Change(run, finding, speedup, low, high)


def _around(run: Run, since: float, moment: float) -> tuple[list[Stretch], list[Stretch]]:
    unit: Unit = "samples/s" if has_samples(run) else "steps/s"
    windows = [window for window in run.timeline if window.steps and window.steps_seconds > 0]
    pairs = list(zip(windows, stretches_of(run, unit), strict=True))
    before = [stretch for window, stretch in pairs if since <= window.start + window.seconds <= moment]
    return before, [stretch for window, stretch in pairs if window.start >= moment]


def _promises(finding: Finding) -> bool:
    return finding.speedup is not None and finding.speedup.likely >= PROMISING


def _key(finding: Finding) -> Key:
    return finding.run or "", finding.id, finding.rank, finding.gpu
