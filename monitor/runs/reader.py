"""`RunReader`: every ring of some directories, read at each poll, as training runs."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from monitor.clock import Moment
from monitor.runs.clean import DeadRing, remove, surplus
from monitor.runs.discovery import MAX_RINGS, Discovery, Found
from monitor.runs.follow import Follower, NotReady
from monitor.runs.join import group, make_run
from monitor.runs.sink import RecordSink
from monitor.snapshot import Gpu, Process, Run
from sdk.ring import RingError

KEEP_ENDED_SECONDS = 600.0
"""How long a run that is over stays in the snapshot."""
CLEAN_EVERY_SECONDS = 30.0
MAX_TRIES = 10
MAX_WORKERS = 64
"""Dead workers of one rank kept for its loader figures."""


class RunReader:
    """Not thread-safe: one thread polls and asks."""

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        sink: RecordSink | None = None,
        keep_ended: float = KEEP_ENDED_SECONDS,
        run: str | None = None,
    ) -> None:
        self.discovery = Discovery(directories, run)
        self.sink = sink
        self.keep_ended = keep_ended
        self.followers: list[Follower] = []
        self._waiting: list[tuple[Found, int]] = []
        self._dead: list[DeadRing] = []
        self._broken: Counter[str] = Counter()
        self._next_clean = 0.0

    @property
    def dropped(self) -> dict[str, int]:
        """What was left out and why → how many; empty when nothing was."""
        bad = sum(follower.counters.bad for follower in self.followers)
        found = self.discovery.dropped + self._broken + Counter({"records": bad})
        return {f"rings.{reason}": count for reason, count in sorted(found.items()) if count > 0}

    def poll(self, now: Moment) -> None:
        """Find new rings, read new records, hand them to the sink, let old rings go. Never raises."""
        waiting, self._waiting = self._waiting, []
        live = sum(follower.alive for follower in self.followers)
        for found in self.discovery.scan(MAX_RINGS - live):
            self._follow(found, 0)
        for found, tries in waiting:
            self._follow(found, tries)
        for follower in self.followers:
            if follower.alive:
                self._poll_one(follower, now)
        if self.sink is not None:
            self.sink.commit()
        self._expire(now)
        if self.sink is not None and now.monotonic >= self._next_clean:
            self._next_clean = now.monotonic + CLEAN_EVERY_SECONDS
            self._clean(now)

    def _follow(self, found: Found, tries: int) -> None:
        try:
            self.followers.append(Follower(found, self.sink))
        except NotReady:
            if tries < MAX_TRIES:
                self._waiting.append((found, tries + 1))
            else:
                self._refuse(found)
        except (RingError, OSError):
            self._refuse(found)

    def _refuse(self, found: Found) -> None:
        self._broken["broken"] += 1
        self.discovery.release(found.owner)
        with contextlib.suppress(OSError):
            os.close(found.fd)

    def _poll_one(self, follower: Follower, now: Moment) -> None:
        try:
            follower.poll(now)
        except (RingError, OSError):
            self._broken["broken"] += 1
            follower.alive = False
            follower.ended_wall = now.wall
            follower.close()
        if not follower.alive:
            self.discovery.release(follower.found.owner)
            self._dead.append(_dead(follower, now))

    def _expire(self, now: Moment) -> None:
        """Forget runs that are over for long, and all but the newest dead workers of a rank."""
        kept: list[Follower] = []
        workers: Counter[tuple[str, int]] = Counter()
        for follower in reversed(self.followers):
            if not follower.alive:
                if self._is_over(follower, now):
                    continue
                whose = (follower.meta.run, follower.meta.rank)
                workers[whose] += follower.is_worker
                if follower.is_worker and workers[whose] > MAX_WORKERS:
                    continue
            kept.append(follower)
        self.followers = kept[::-1]

    def _is_over(self, follower: Follower, now: Moment) -> bool:
        """Out of view: ended long ago, shown at least once, and no rank of its run lives."""
        over = now.wall - (follower.ended_wall or now.wall)
        shown = follower.shown or follower.is_worker
        return over > self.keep_ended and shown and not self._has_live(follower)

    def _has_live(self, follower: Follower) -> bool:
        """Another rank of the same run still lives: the dead one stays in view beside it."""
        run = follower.meta.run
        return not follower.is_worker and any(f.alive and f.meta.run == run for f in self.followers)

    def _clean(self, now: Moment) -> None:
        assert self.sink is not None
        stored = {dead.key for dead in self._dead if self.sink.finished(dead.key)}
        for dead in surplus(self._dead, now.wall, stored):
            remove(dead)
            self._dead.remove(dead)

    def pids(self) -> dict[int, tuple[str, int]]:
        """Host pids of live trainers → (run id, rank)."""
        return {
            follower.host_pid: (follower.meta.run, follower.meta.rank)
            for follower in self.followers
            if follower.alive and not follower.is_worker
        }

    def runs(self, now: Moment, gpus: Sequence[Gpu], processes: Sequence[Process]) -> tuple[Run, ...]:
        """All runs in view, the newest first; one that ended before anybody looked is in view once."""
        made = [
            make_run(trainers, workers, now, gpus, processes) for trainers, workers in group(self.followers)
        ]
        for follower in self.followers:
            follower.shown = True
        return tuple(sorted(made, key=lambda run: -run.started))

    def close(self) -> None:
        for follower in self.followers:
            follower.close()
        for found, _ in self._waiting:
            with contextlib.suppress(OSError):
                os.close(found.fd)
        self.followers = []


def _dead(follower: Follower, now: Moment) -> DeadRing:
    found = follower.found
    ended = follower.ended_wall if follower.ended_wall is not None else now.wall
    size = follower.header.slots * 256
    return DeadRing(found.path, found.inode, follower.identity.key, ended, size, follower.is_worker)
