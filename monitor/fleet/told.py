"""What was told about one run, by machine, rank and phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from monitor.fleet.api import Sample
from monitor.fleet.questions import Answers

RunKey = tuple[str, str, str]
"""Cluster (an external label many sites set; else empty), scrape job, run."""
RankKey = tuple[str, int]
"""Scrape target and rank."""
Named = dict[str, list[Sample]]
"""Samples by the name of their series."""


@dataclass(slots=True)
class Told:
    """The samples about one run."""

    at: float
    known: Named = field(default_factory=dict)
    now: Named = field(default_factory=dict)
    increases: Named = field(default_factory=dict)
    use: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Scrape target and uuid of a GPU → its mean use."""
    unreachable: frozenset[str] = frozenset()
    """Scrape targets that do not answer."""
    held_gpu_hours: float | None = None
    idle_gpu_hours: float | None = None

    def by_instance(self, name: str) -> dict[str, float]:
        return {one.labels.get("instance", ""): one.value for one in self._all(name)}

    def by_rank(self, name: str) -> dict[RankKey, float]:
        return {key: one.value for one in self._all(name) if (key := rank_of(one)) is not None}

    def by_phase(self, name: str) -> dict[RankKey, dict[str, float]]:
        found: dict[RankKey, dict[str, float]] = {}
        for one in self._all(name):
            key = rank_of(one)
            if key is not None:
                found.setdefault(key, {})[one.labels.get("phase", "")] = one.value
        return found

    def infos(self, name: str) -> Iterator[Sample]:
        return iter(self.known.get(name, ()))

    def _all(self, name: str) -> list[Sample]:
        """As it is now, and where that is not told, as it was last known."""
        return [*self.known.get(name, ()), *self.now.get(name, ()), *self.increases.get(name, ())]


def rank_of(one: Sample) -> RankKey | None:
    rank = one.labels.get("rank", "")
    return (one.labels.get("instance", ""), int(rank)) if rank.isdecimal() else None


def by_run(answers: Answers) -> dict[RunKey, Told]:
    """Every run that was told of, with what was told about it."""
    filed = _Filed(answers)
    for one in answers.known:
        _add(filed.told(one).known, one.labels.get("__name__", ""), one)
    for one in answers.now:
        _add(filed.told(one).now, one.labels.get("__name__", ""), one)
    for name, samples in answers.increases.items():
        for one in samples:
            _add(filed.told(one).increases, name, one)
    for one in answers.held_gpu_hours:
        filed.told(one).held_gpu_hours = one.value
    for one in answers.idle_gpu_hours:
        filed.told(one).idle_gpu_hours = one.value
    return {key: one for key, one in filed.runs.items() if "gpumon_run_info" in one.known}


class _Filed:
    """Samples by the run they are about."""

    def __init__(self, answers: Answers) -> None:
        self.runs: dict[RunKey, Told] = {}
        self._answers = answers
        self._down: dict[str, set[str]] = {}  # another exporter on a machine may be down by itself
        for one in answers.down:
            self._down.setdefault(one.labels.get("job", ""), set()).add(one.labels.get("instance", ""))
        self._use = {
            (one.labels.get("instance", ""), one.labels.get("uuid", "")): one.value for one in answers.use
        }

    def told(self, one: Sample) -> Told:
        key = (one.labels.get("cluster", ""), one.labels.get("job", ""), one.labels.get("run", ""))
        if key not in self.runs:
            down = frozenset(self._down.get(key[1], ()))
            self.runs[key] = Told(self._answers.at, use=self._use, unreachable=down)
        return self.runs[key]


def _add(place: Named, name: str, one: Sample) -> None:
    place.setdefault(name, []).append(one)
