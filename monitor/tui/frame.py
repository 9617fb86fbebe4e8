"""What the screens are drawn from: per host the newest snapshot, how old it is, and short trails.

Updates come from feeds (another thread) through a queue; everything here happens in the app's own
thread. A trail is the list of readings seen, for the graphs: it holds no derived figure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple

from monitor.clock import Moment
from monitor.snapshot import Finding, Gpu, Run, Snapshot

Link = Literal["waiting", "live", "stale", "down"]
TRAIL = 1200
STALE_TICKS = 3.0
SEVERITIES = ("critical", "warning", "hint", "healthy")


class Update(NamedTuple):
    """One thing a feed has to say: a snapshot, why there is none, or readings from before."""

    host: int
    snapshot: Snapshot | None
    error: str | None
    at: Moment
    past: Past | None = None


class Reading(NamedTuple):
    """What a graph needs of a GPU at one tick."""

    use: float | None
    memory: float | None
    power: float | None
    temperature: float | None
    clock: float | None
    throttle: frozenset[str]
    received: float | None
    sent: float | None


Trail = deque[Reading]
Past = dict[str, list[Reading]]
"""GPU uuid → readings older than the first snapshot, oldest first."""


@dataclass(frozen=True, slots=True)
class HostFrame:
    """One machine as it is known now."""

    label: str
    link: Link
    snapshot: Snapshot | None = None
    age: float | None = None
    error: str | None = None
    mode: str = ""
    """How its snapshots come: "" a daemon, "own" readings of this process, "replay"."""
    trails: dict[str, Trail] = field(default_factory=dict, compare=False)

    @property
    def current(self) -> bool:
        return self.link == "live"

    def recent(self, uuid: str, count: int) -> list[Reading]:
        """The newest `count` readings of a GPU, oldest first."""
        trail = self.trails.get(uuid)
        if trail is None:
            return []
        return list(trail) if len(trail) <= count else list(islice(reversed(trail), count))[::-1]


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything a screen may show at one moment."""

    hosts: tuple[HostFrame, ...]
    now: Moment
    paused: bool = False
    note: str = ""
    """What the header says besides: the place in a replay."""

    @property
    def several(self) -> bool:
        return len(self.hosts) > 1

    def gpus(self) -> Iterator[tuple[HostFrame, Gpu]]:
        return ((host, gpu) for host in self._known() for gpu in _of(host).gpus)

    def runs(self) -> Iterator[tuple[HostFrame, Run]]:
        return ((host, run) for host in self._known() for run in _of(host).runs)

    def findings(self, *, past: bool = False) -> Iterator[tuple[HostFrame, Finding]]:
        """As each host ranked them; over several hosts the severe ones come first. What was found about
        a run that has been run again since is left out, unless the past is asked for, too."""
        found = []
        for host in self._known():
            again = set() if past else _run_again(_of(host).runs)
            found += [(host, finding) for finding in _of(host).findings if finding.run not in again]
        return iter(
            sorted(found, key=lambda pair: SEVERITIES.index(pair[1].severity)) if self.several else found
        )

    def host(self, label: str) -> HostFrame | None:
        return next((host for host in self.hosts if host.label == label), None)

    def run(self, label: str, run_id: str) -> tuple[HostFrame, Run] | None:
        return next(((h, r) for h, r in self.runs() if h.label == label and r.id == run_id), None)

    def gpu(self, label: str, uuid: str) -> tuple[HostFrame, Gpu] | None:
        return next(((h, g) for h, g in self.gpus() if h.label == label and g.uuid == uuid), None)

    @property
    def simulated(self) -> bool:
        return any(gpu.simulated or _of(host).source.kind == "simulated" for host, gpu in self.gpus())

    def _known(self) -> Iterable[HostFrame]:
        return (host for host in self.hosts if host.snapshot is not None)


def _run_again(runs: Iterable[Run]) -> set[str]:
    """Runs that are over and have a younger one of the same name and user."""
    newest: dict[tuple[str, str | None], float] = {}
    for run in runs:
        newest[run.name, run.user] = max(run.started, newest.get((run.name, run.user), 0.0))
    return {run.id for run in runs if run.ended and run.started < newest[run.name, run.user]}


def _of(host: HostFrame) -> Snapshot:
    assert host.snapshot is not None
    return host.snapshot


@dataclass(slots=True)
class _State:
    label: str
    mode: str
    snapshot: Snapshot | None = None
    at: Moment | None = None
    error: str | None = None
    trails: dict[str, Trail] = field(default_factory=dict)


class Hub:
    """Folds updates into frames."""

    def __init__(self, hosts: Iterable[tuple[str, str]], clock: Callable[[], Moment] = Moment.now) -> None:
        self._states = [_State(label, mode) for label, mode in hosts]
        self.clock = clock
        self.note = ""

    def take(self, updates: Iterable[Update]) -> None:
        """Fold in what arrived, in order; trails get every snapshot even when many came at once."""
        for update in updates:
            state = self._states[update.host]
            if update.past is not None:
                _prepend(state.trails, update.past)
                continue
            if update.snapshot is None:
                state.error = update.error
                continue
            state.snapshot, state.at, state.error = update.snapshot, update.at, update.error
            _extend(state.trails, update.snapshot)

    def reset(self, host: int) -> None:
        """Forget the trails: a replay has jumped."""
        self._states[host].trails.clear()

    def frame(self, paused: bool = False) -> Frame:
        now = self.clock()
        return Frame(tuple(_view(state, now) for state in self._states), now, paused, self.note)


def _extend(trails: dict[str, Trail], snapshot: Snapshot) -> None:
    for gpu in snapshot.gpus:
        trails.setdefault(gpu.uuid, deque(maxlen=TRAIL)).append(reading(gpu))


def _prepend(trails: dict[str, Trail], past: Past) -> None:
    """What the history knows goes before what was seen; the newest always stays."""
    for uuid, older in past.items():
        trail = trails.setdefault(uuid, deque(maxlen=TRAIL))
        trail.extendleft(reversed(older[-(TRAIL - len(trail)) :] if len(trail) < TRAIL else []))


def reading(gpu: Gpu) -> Reading:
    """A GPU's current readings for its trail; one that is not answering leaves a gap."""
    if gpu.state != "ok":
        return Reading(None, None, None, None, None, frozenset(), None, None)
    active = frozenset(name for name, on in (gpu.throttle or {}).items() if on)
    return Reading(
        gpu.utilization_ratio,
        gpu.memory_used_bytes,
        gpu.power_watts,
        gpu.temperature_celsius,
        gpu.sm_clock_hertz,
        active,
        gpu.pcie.receive_bytes_per_second,
        gpu.pcie.transmit_bytes_per_second,
    )


def _view(state: _State, now: Moment) -> HostFrame:
    age = None if state.at is None else max(0.0, now.monotonic - state.at.monotonic)
    return HostFrame(
        state.label, _link(state, age), state.snapshot, age, state.error, state.mode, state.trails
    )


def _link(state: _State, age: float | None) -> Link:
    if state.error is not None:
        return "down"
    if state.snapshot is None or age is None:
        return "waiting"
    return "live" if age <= max(2.5, STALE_TICKS * state.snapshot.interval_seconds) else "stale"
