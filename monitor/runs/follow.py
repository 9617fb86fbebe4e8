"""Follows one ring: new records, liveness, meta and scalars, all with `pread`."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

from msgspec.structs import replace

from monitor.model.clock import Moment
from monitor.model.owner import run_id
from monitor.model.records import Counters, RecordSink, RingIdentity
from monitor.model.run import Rank, RunState
from monitor.model.steps import Columns
from monitor.runs.discovery import Found
from monitor.runs.figures import RankFigures, count
from monitor.runs.liveness import UNSEEN, writer_pid
from monitor.runs.meta import Meta, parse_meta
from monitor.runs.workers import WorkerFigures
from sdk import ring

BATCH = 4096
"""Our choice: 1 MiB of records at a time."""
MAX_RECORDS = 1 << 17
"""Records taken from one ring per poll; the rest waits for the next."""
MOST_STEPS = 1 << 50
FUTURE_NS = 2 * 10**9
CORRECTED_NS = 60 * 10**9
"""Limits on what a ring may claim: a step number, a time ahead of our clock, a wall clock ahead of ours."""
MOST_PROBED = float(1 << 62)
MOST_SCALAR = 1e300
"""Beyond these a value is not a measurement, and summing or rounding it could fail."""
HURRY_SHARE = 8
"""A writer that fills more than this fraction of its ring between two polls is read in every poll."""
MAX_TRIES = 10
"""Consecutive polls that may fail to read a file before giving up."""


class NotReady(ring.RingError):
    """Try again at the next poll."""


class OtherClock(ring.RingError):
    """Left over from a clock that is not ours, such as that of before the machine was started anew: none of
    its times means anything here."""


class Follower:
    """One ring from its discovery to its end."""

    def __init__(self, found: Found, sink: RecordSink | None, now: Moment) -> None:
        self.found = found
        self.fd = found.fd
        self.sink = sink
        self.header = self._read_header()
        meta = ring.read_meta(self.fd)
        if meta is None:
            raise NotReady("meta is being written")
        began = self.header.started_mono_ns
        if began > _latest_ns(now) and writer_pid(self.fd, self.header, self.owner) is None:
            raise OtherClock("written under another clock")
        self.meta: Meta = parse_meta(meta)
        self.config: dict[str, Any] = self.meta.config
        self._meta_seq = self.header.meta_seq
        self.identity = self._identity(now)
        self.counters = (sink.resume(self.identity.key) if sink else None) or Counters()
        self.stored = self.counters.cursor
        self.cursor = min(self.stored, max(0, self.header.head - self.header.slots))
        names = self.identity.phases
        self.figures: RankFigures | None = None if self.is_worker else RankFigures(names)
        self.worker = WorkerFigures() if self.is_worker else None
        self._catch_up()
        self.scalars: dict[str, float] = {}
        self.host_pid = UNSEEN
        self.alive = True
        self.ended_wall: float | None = None
        self.ended_at: float | None = None
        """When it ended, on the reader's monotonic clock; may predate the reader itself."""
        self.failures = 0
        self.waits = False
        """Not read in this poll, and shown as it was."""
        self.shown: Rank | None = None
        self._polled = False
        self._hurries = False

    def _catch_up(self) -> None:
        """After a daemon restart: what the ring has since overwritten comes from the sink."""
        if self.sink is None or self.figures is None or not self.stored:
            return
        if self.header.head <= self.header.slots:
            return  # the ring still has everything
        for columns in self.sink.replay(self.identity):
            self.figures.add(columns)
            self.cursor = self.stored

    @property
    def is_worker(self) -> bool:
        return self.meta.kind == ring.KIND_WORKER

    def _read_header(self) -> ring.Header:
        header = ring.read_header(self.fd, os.fstat(self.fd).st_size)
        if header.head > MOST_STEPS or max(header.started_mono_ns, header.started_wall_ns) > 1 << 62:
            raise ring.RingError("header words out of range")
        return header

    @property
    def owner(self) -> int:
        return self.found.owner

    @property
    def run(self) -> tuple[int, str]:
        """The run this ring belongs to: only rings of one owner are ever combined."""
        return self.found.owner, self.meta.run

    def _identity(self, now: Moment) -> RingIdentity:
        header, meta = self.header, self.meta
        part = f"{meta.run}.{meta.rank}.{meta.kind}.{meta.worker_id}.{header.pid}@{header.started_wall_ns}"
        claimed, ours = header.started_wall_ns - header.started_mono_ns, int((now.wall - now.monotonic) * 1e9)
        return RingIdentity(
            key=f"{self.owner}:{part}",
            run=run_id(meta.run, self.owner),
            rank=meta.rank,
            kind=meta.kind,
            # A claim may date from an earlier boot, but not from the future: steps dated there would never
            # expire. Clocks are corrected a little all the time.
            wall_offset_ns=claimed if claimed <= ours + CORRECTED_NS else ours,
            phases=meta.phase_names,
            owner=self.owner,
        )

    @property
    def started_wall(self) -> float:
        """Wall time of the start; never later than the clocks allow, whatever the ring claims."""
        wall_ns = min(self.header.started_wall_ns, self.header.started_mono_ns + self.identity.wall_offset_ns)
        return max(0, wall_ns) / 1e9

    def poll(self, now: Moment, limit: int, *, with_meta: bool = True) -> None:
        """Read what is new, at most `limit` records, and the meta if it has changed. Raises `RingError` if
        the file has gone bad, and `OSError` if it cannot be read now."""
        # Asked before reading the records: a writer that is gone by now has written its last.
        pid = writer_pid(self.fd, self.header, self.owner)
        self.header = self._read_header()
        if pid is not None:
            self.host_pid = pid
        if with_meta and self.has_new_meta:
            self._refresh_meta()
        before = self.cursor
        self._read_records(now, limit)
        if pid is None and (self.cursor == before or self.cursor >= self.header.head):
            self._give_up()
        if self.figures is not None:
            self._read_scalars()
        self.failures = 0
        self._hurries = self.cursor - before > self.header.slots // HURRY_SHARE
        if (pid is None or self.header.state != ring.S_RUNNING) and self.cursor >= self.header.head:
            self._finish(now)
        self._polled = True

    @property
    def may_wait(self) -> bool:
        """Whether it need not be read in every poll: a known rank, not about to overwrite unread records."""
        known = self.figures is not None and self.shown is not None
        return self.alive and self._polled and known and not self._hurries

    @property
    def is_first(self) -> bool:
        """Whether its run shows this rank's timeline."""
        return self.figures is not None and self.figures.timeline is not None

    @property
    def has_new_meta(self) -> bool:
        return self.header.meta_seq != self._meta_seq

    def _refresh_meta(self) -> None:
        meta = ring.read_meta(self.fd)
        if meta is None:
            return
        fresh = parse_meta(meta)
        if (fresh.run, fresh.rank, fresh.kind) != (self.meta.run, self.meta.rank, self.meta.kind):
            raise ring.RingError("the ring changed its run, rank or kind")
        self.meta, self.config, self._meta_seq = fresh, fresh.config, self.header.meta_seq
        self.identity = replace(self.identity, phases=fresh.phase_names)
        if self.figures is not None:
            self.figures.rename(self.identity.phases)

    def _read_records(self, now: Moment, budget: int) -> None:
        while budget > 0 and self.cursor < self.header.head:
            most = self.stored - self.cursor if self.cursor < self.stored else BATCH
            block = ring.read_block(self.fd, self.header, self.cursor, min(most, BATCH, budget))
            if block.cursor == self.cursor:
                return
            self._account(block, now)
            budget -= block.cursor - self.cursor
            self.cursor = block.cursor

    def _give_up(self) -> None:
        """A dead writer's incomplete records will never be completed: they are lost. So are the steps it
        finished but had not written."""
        last = self.header.head
        if self.header.state == ring.S_RUNNING:
            last = max(last, self.header.closed)
        missing = last - max(self.cursor, self.stored)
        if missing > 0:
            self.counters.lost += missing
            self.cursor = last
            if self.sink is not None:
                self.sink.records(self.identity, None, self.counters)

    def _account(self, block: ring.Block, now: Moment) -> None:
        """Every record goes into the figures; only those not stored before into counters and sink."""
        columns = Columns(block, _latest_ns(now)) if block.count else None
        new = block.cursor - max(self.cursor, self.stored)
        if new > 0:
            fresh = block.count if block.first > self.stored else 0
            self.counters.read += fresh
            self.counters.lost += new - fresh
            if columns is not None and fresh:
                count(self.counters, columns)
            if self.sink is not None:
                self.sink.records(self.identity, columns, self.counters)
        if columns is None:
            return
        if self.figures is not None:
            self.figures.add(columns)
        elif self.worker is not None:
            self.worker.add(columns)

    def _read_scalars(self) -> None:
        values = ring.read_scalars(self.fd)
        pairs = zip(self.meta.scalars, values, strict=False)
        self.scalars = {
            name: value
            for name, value in pairs
            if abs(value) < (MOST_PROBED if "." in name else MOST_SCALAR)  # false for NaN
        }

    def _finish(self, now: Moment) -> None:
        """The writer is gone and everything it wrote has been read: nothing can change any more."""
        self.alive = False
        offset = self.identity.wall_offset_ns
        ended = self.header.ended_mono_ns
        if not ended and self.figures is not None:
            ended = self.figures.last_end_ns or 0
        wall = (ended + offset) / 1e9 if ended else now.wall
        self.ended_wall = min(max(wall, self.started_wall), now.wall)
        # The wall clock may have been set since, so it only counts for what ended before the first poll.
        self.ended_at = now.monotonic - (0.0 if self._polled else now.wall - self.ended_wall)
        self.close()

    def break_off(self, now: Moment) -> None:
        """The file has gone bad: keep what was read of it."""
        self.alive = False
        self.ended_wall, self.ended_at = now.wall, now.monotonic
        self.close()

    def state(self) -> RunState:
        """Regardless of time: the caller decides whether it is stalled."""
        if self.header.state in (ring.S_ENDED, ring.S_INTERRUPTED):
            return "ended"
        if self.header.state == ring.S_FAILED:
            return "failed"
        if self.alive:
            return "running"
        return "ended" if self.header.signal == signal.SIGTERM else "killed"  # its own parent had it end

    def close(self) -> None:
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self.fd)
            self.fd = -1


def _latest_ns(now: Moment) -> int:
    """No record can have ended later. The clock is read here rather than per tick: the writer keeps going
    while the tick runs."""
    return max(int(now.monotonic * 1e9), time.monotonic_ns()) + FUTURE_NS
