"""Follow one ring: new records, liveness, meta and scalars, all with `pread`."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from monitor.clock import Moment
from monitor.runs.columns import Columns
from monitor.runs.discovery import Found
from monitor.runs.figures import RankFigures, count
from monitor.runs.liveness import writer_pid
from monitor.runs.meta import Meta, parse_meta
from monitor.runs.sink import Counters, RecordSink, RingIdentity
from monitor.runs.workers import WorkerFigures
from monitor.snapshot import RunState
from sdk import ring

BATCH = 4096
MAX_RECORDS = 1 << 17
"""Records taken from one ring in one poll; the rest waits for the next."""
MOST_STEPS = 1 << 50
FUTURE_NS = 2 * 10**9


class NotReady(ring.RingError):
    """Look again at the next poll."""


class Follower:
    """One ring from its discovery to its end."""

    def __init__(self, found: Found, sink: RecordSink | None) -> None:
        self.found = found
        self.fd = found.fd
        self.sink = sink
        self.header = self._read_header()
        meta = ring.read_meta(self.fd)
        if meta is None:
            raise NotReady("meta is being written")
        self.meta: Meta = parse_meta(meta)
        self.config: dict[str, Any] = self.meta.config
        self._meta_seq = self.header.meta_seq
        self.identity = self._identity()
        self.counters = (sink.resume(self.identity.key) if sink else None) or Counters()
        self.stored = self.counters.cursor
        self.cursor = min(self.stored, max(0, self.header.head - self.header.slots))
        names = self.identity.phases
        self.figures: RankFigures | None = None if self.is_worker else RankFigures(names)
        self.worker = WorkerFigures() if self.is_worker else None
        self._catch_up()
        self.scalars: dict[str, float] = {}
        self.host_pid = self.header.pid
        self.alive = True
        self.ended_wall: float | None = None
        self.shown = False
        """It has been in a snapshot at least once."""

    def _catch_up(self) -> None:
        """A daemon that was restarted: what the ring has overwritten since comes from the sink."""
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

    def _identity(self) -> RingIdentity:
        header, meta = self.header, self.meta
        return RingIdentity(
            key=f"{self.found.path.name}@{header.started_wall_ns}",
            run=meta.run,
            rank=meta.rank,
            kind=meta.kind,
            wall_offset_ns=header.started_wall_ns - header.started_mono_ns,
            phases=meta.phase_names,
        )

    def poll(self, now: Moment) -> None:
        """Read what is new. Raises `RingError` or `OSError` when the file has gone bad."""
        if not self.alive:
            return
        # Asked before the records are read: a writer that is gone by now has written its last.
        pid = writer_pid(self.fd, self.header)
        self.header = self._read_header()
        if pid is not None:
            self.host_pid = pid
        self._refresh_meta()
        before = self.cursor
        self._read_records(now)
        if pid is None and (self.cursor == before or self.cursor >= self.header.head):
            self._give_up()
        if self.figures is not None:
            self._read_scalars()
        if (pid is None or self.header.state != ring.S_RUNNING) and self.cursor >= self.header.head:
            self._finish(now)

    def _refresh_meta(self) -> None:
        if self.header.meta_seq == self._meta_seq:
            return
        meta = ring.read_meta(self.fd)
        if meta is None:
            return
        fresh = parse_meta(meta)
        if (fresh.run, fresh.rank, fresh.kind) != (self.meta.run, self.meta.rank, self.meta.kind):
            raise ring.RingError("the ring changed whose it is")
        self.meta, self.config, self._meta_seq = fresh, fresh.config, self.header.meta_seq
        self.identity = self._identity()
        if self.figures is not None:
            self.figures.rename(self.identity.phases)

    def _read_records(self, now: Moment) -> None:
        budget = MAX_RECORDS
        while budget > 0 and self.cursor < self.header.head:
            limit = self.stored - self.cursor if self.cursor < self.stored else BATCH
            block = ring.read_block(self.fd, self.header, self.cursor, min(limit, BATCH))
            if block.cursor == self.cursor:
                return
            self._account(block, now)
            budget -= block.cursor - self.cursor
            self.cursor = block.cursor

    def _give_up(self) -> None:
        """A dead writer's records that never became whole will not do so any more: they are lost. So are
        the steps it had done and not written yet."""
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
        """Every record into the figures; only those not stored before into counters and sink."""
        columns = Columns(block, int(now.monotonic * 1e9) + FUTURE_NS) if block.count else None
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
        self.scalars = {name: value for name, value in pairs if value == value and abs(value) != float("inf")}

    def _finish(self, now: Moment) -> None:
        """The writer is gone and everything it wrote is read: nothing can change any more."""
        self.alive = False
        offset = self.identity.wall_offset_ns
        ended = self.header.ended_mono_ns
        if not ended and self.figures is not None:
            ended = self.figures.last_end_ns or 0
        wall = (ended + offset) / 1e9 if ended else now.wall
        self.ended_wall = min(max(wall, self.header.started_wall_ns / 1e9), now.wall)
        self.close()

    def state(self) -> RunState:
        """Without looking at time: whether it is stalled is for the caller to see."""
        if self.header.state == ring.S_ENDED:
            return "ended"
        if self.header.state == ring.S_FAILED:
            return "failed"
        return "running" if self.alive else "killed"

    def close(self) -> None:
        if self.fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self.fd)
            self.fd = -1
