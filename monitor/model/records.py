"""What the ring reader passes on: each batch of records, with its owner and the position reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct, field

from monitor.model.owner import UNKNOWN_OWNER
from monitor.model.run import STEP_BUCKETS
from monitor.model.steps import Columns
from sdk.ring import PHASE_SLOTS

MOST = 1 << 62
"""Cap for sums of what rings claim: JSON and SQLite cannot hold larger integers."""


class Counters(Struct):
    """Counters that only grow. Kept with the cursor, so a restarted daemon goes on counting from here."""

    read: int = 0
    lost: int = 0
    samples: int = 0
    tokens: int = 0
    warmup_steps: int = 0
    bad: int = 0
    """Complete records that made no sense (end before begin, a time in the future)."""
    first_begin_ns: int | None = None
    """Begin of the very first step; None when it was lost."""
    measured: int = 0
    busy_ns: int = 0
    starved_ns: int = 0
    other_ns: int = 0
    phase_ns: list[int] = field(default_factory=lambda: [0] * PHASE_SLOTS)
    histogram: list[int] = field(default_factory=lambda: [0] * (len(STEP_BUCKETS) + 1))

    exemplars: dict[int, tuple[int, int, int]] = {}
    """Bucket of the histogram → its newest step: number, ns, end (monotonic ns)."""

    @property
    def cursor(self) -> int:
        return self.read + self.lost

    def limit(self) -> None:
        """No sum of claims may outgrow what can be stored."""
        for name in ("samples", "tokens", "busy_ns", "starved_ns", "other_ns"):
            if getattr(self, name) > MOST:
                setattr(self, name, MOST)
        if max(self.phase_ns) > MOST:
            self.phase_ns = [min(value, MOST) for value in self.phase_ns]


class RingIdentity(Struct, frozen=True):
    """Which ring: a file name reused by a later run is a different ring."""

    key: str
    """Never changes, whatever the ring claims later; no two owners share one."""
    run: str
    """`Run.id`, not what the ring claims."""
    rank: int
    kind: str
    wall_offset_ns: int
    """Add to a record's monotonic ns to get wall time."""
    phases: tuple[str, ...]
    """Name of every phase id."""
    owner: int = UNKNOWN_OWNER
    """Uid of the file's owner."""


class RecordSink(Protocol):
    """Where records go in addition to the figures. Nothing here may raise."""

    def resume(self, key: str) -> Counters | None:
        """How far this ring was stored before, or None if it is new."""

    def replay(self, ring: RingIdentity) -> Iterable[Columns]:
        """What was stored of this ring, oldest first: figures for steps the ring no longer holds."""

    def records(self, ring: RingIdentity, columns: Columns | None, counters: Counters) -> None:
        """The batch that follows the ring's last one (None: all of it was lost); `counters` include it. The
        columns may change after the call."""

    def commit(self) -> None:
        """End of a poll: batches and their cursors become durable together."""

    def finished(self, key: str) -> bool:
        """True once everything handed over from this ring is stored, so its file may go."""
