"""What the screens are drawn from: the newest snapshot of each host, its age, and recent readings.

Feeds send updates through a queue from other threads; everything here runs in the app's own thread. A trail
is the list of readings seen, for the graphs; it contains no derived figures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, NamedTuple

from monitor.model import groups
from monitor.model.clock import Moment
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu
from monitor.model.host import Host
from monitor.model.part import part_of
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot
from monitor.tui.pick import ALL, ORDERS, Pick

Link = Literal["waiting", "live", "stale", "down"]
TRAIL = 1200
"""Readings kept for a GPU's graphs: 20 minutes at one per second."""
SEVERITIES = ("critical", "warning", "hint", "healthy")


class Update(NamedTuple):
    """What a feed sent: a snapshot, the reason there is none, or readings from before the first one."""

    host: int
    snapshot: Snapshot | None
    error: str | None
    at: Moment
    past: Past | None = None


class Reading(NamedTuple):
    """A GPU's values for the graphs at one tick."""

    use: float | None
    memory: float | None
    power: float | None
    temperature: float | None
    clock: float | None
    throttle: frozenset[str]
    received: float | None
    sent: float | None


class HostReading(NamedTuple):
    """A machine's values for the graphs at one tick."""

    cpu: float | None
    memory: float | None
    read: float | None
    write: float | None
    received: float | None
    sent: float | None


Trail = deque[Reading]
HostTrail = deque[HostReading]
Past = dict[str, list[Reading]]
"""GPU uuid → readings older than the first snapshot, oldest first."""


@dataclass(frozen=True, slots=True)
class HostFrame:
    """One machine as currently known."""

    label: str
    link: Link
    snapshot: Snapshot | None = None
    age: float | None = None
    error: str | None = None
    mode: str = ""
    """Where its snapshots come from: "" a daemon, "own" this process, "replay" the history."""
    trails: dict[str, Trail] = field(default_factory=dict, compare=False)
    machine: HostTrail = field(default_factory=deque, compare=False)
    """The machine's own readings."""

    @property
    def current(self) -> bool:
        return self.link == "live"

    def recent(self, uuid: str, count: int) -> list[Reading]:
        """The newest `count` readings of a GPU, oldest first."""
        trail = self.trails.get(uuid)
        return [] if trail is None else list(islice(reversed(trail), count))[::-1]

    def recent_of_machine(self, count: int) -> list[HostReading]:
        return list(islice(reversed(self.machine), count))[::-1]


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything a screen may show at one moment."""

    hosts: tuple[HostFrame, ...]
    now: Moment
    paused: bool = False
    note: str = ""
    """What else the header says: that this is a replay, and of when."""
    pick: Pick = ALL

    def picked(self, pick: Pick) -> Frame:
        """The part of the frame that `pick` asks for, in its order."""
        hosts = self.hosts
        if pick.words or pick.user is not None:
            hosts = tuple(
                host
                if host.snapshot is None
                else replace(host, snapshot=part_of(host.snapshot, pick.words, pick.user))
                for host in hosts
            )
        return replace(self, hosts=hosts, pick=pick)

    @property
    def narrowed(self) -> bool:
        """Whether a filter may be hiding things."""
        return bool(self.pick.words) or self.pick.user is not None

    @property
    def several(self) -> bool:
        return len(self.hosts) > 1

    def gpus(self) -> Iterator[tuple[HostFrame, Gpu]]:
        value = ORDERS[self.pick.order][0]
        found = ((host, gpu) for host in self._known() for gpu in _of(host).gpus)
        return iter(sorted(found, key=lambda pair: value(pair[1])))

    def runs(self) -> Iterator[tuple[HostFrame, Run]]:
        value = ORDERS[self.pick.order][1]
        found = ((host, run) for host in self._known() for run in _of(host).runs)
        return iter(sorted(found, key=lambda pair: value(pair[1])))

    def findings(self, *, past: bool = False) -> Iterator[tuple[HostFrame, Finding]]:
        """In each host's own ranking, with duplicates merged; with several hosts, the most severe first. With
        `past`, every single one, including those about runs that have been rerun since."""
        found = [
            (host, finding)
            for host in self._known()
            for finding in (_of(host).findings if past else groups.leads(_of(host)))
        ]
        if self.several:
            found.sort(key=lambda pair: SEVERITIES.index(pair[1].severity))
        return iter(found)

    def run(self, label: str, run_id: str) -> tuple[HostFrame, Run] | None:
        return next(((h, r) for h, r in self.runs() if h.label == label and r.id == run_id), None)

    def gpu(self, label: str, uuid: str) -> tuple[HostFrame, Gpu] | None:
        return next(((h, g) for h, g in self.gpus() if h.label == label and g.uuid == uuid), None)

    @property
    def simulated(self) -> bool:
        return any(gpu.simulated or _of(host).source.kind == "simulated" for host, gpu in self.gpus())

    def _known(self) -> Iterable[HostFrame]:
        return (host for host in self.hosts if host.snapshot is not None)


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
    machine: HostTrail = field(default_factory=lambda: deque(maxlen=TRAIL))


class Hub:
    """Folds updates into frames."""

    def __init__(self, hosts: Iterable[tuple[str, str]], clock: Callable[[], Moment] = Moment.now) -> None:
        self._states = [_State(label, mode) for label, mode in hosts]
        self.clock = clock
        self.note = ""

    def take(self, updates: Iterable[Update]) -> None:
        """Fold in what arrived, in order; trails get every snapshot, even if many arrived at once."""
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
            state.machine.append(machine_reading(update.snapshot.host))

    def reset(self, host: int) -> None:
        """Forget the trails, because a replay has jumped."""
        self._states[host].trails.clear()
        self._states[host].machine.clear()

    def frame(self, paused: bool = False) -> Frame:
        now = self.clock()
        return Frame(tuple(_view(state, now) for state in self._states), now, paused, self.note)


def _extend(trails: dict[str, Trail], snapshot: Snapshot) -> None:
    for gpu in snapshot.gpus:
        trails.setdefault(gpu.uuid, deque(maxlen=TRAIL)).append(reading(gpu))


def _prepend(trails: dict[str, Trail], past: Past) -> None:
    """Put recorded readings before those seen; the newest always stay."""
    for uuid, older in past.items():
        trail = trails.setdefault(uuid, deque(maxlen=TRAIL))
        trail.extendleft(reversed(older[-(TRAIL - len(trail)) :] if len(trail) < TRAIL else []))


def reading(gpu: Gpu) -> Reading:
    """A GPU's current readings for its trail; a GPU that does not answer leaves a gap."""
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


def machine_reading(host: Host) -> HostReading:
    return HostReading(
        host.cpu.utilization_ratio if host.cpu else None,
        host.memory.used_bytes if host.memory else None,
        host.disk_read_bytes_per_second,
        host.disk_write_bytes_per_second,
        host.receive_bytes_per_second,
        host.transmit_bytes_per_second,
    )


def _view(state: _State, now: Moment) -> HostFrame:
    age = None if state.at is None else max(0.0, now.monotonic - state.at.monotonic)
    return HostFrame(
        state.label,
        _link(state, age),
        state.snapshot,
        age,
        state.error,
        state.mode,
        state.trails,
        state.machine,
    )


def _link(state: _State, age: float | None) -> Link:
    if state.error is not None:
        return "down"
    if state.snapshot is None or age is None:
        return "waiting"
    return "live" if age <= state.snapshot.stale_after_seconds else "stale"
