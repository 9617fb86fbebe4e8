"""`RunReader`: every ring in the given directories, read at each poll and presented as training runs.

Rings come from strangers. Whatever is wrong with one costs its owner that ring, is counted, and affects
nobody else: each ring and each run is guarded.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from monitor.model.clock import Moment
from monitor.model.gpu import Gpu
from monitor.model.host import Process
from monitor.model.records import RecordSink
from monitor.model.run import Run
from monitor.runs.cleanup import Cleaner
from monitor.runs.discovery import Discovery, Found
from monitor.runs.ended import EndedRuns
from monitor.runs.follow import MAX_RECORDS, MAX_TRIES, Follower, NotReady, OtherClock
from monitor.runs.grouping import Group, RunKey, group, make_run
from monitor.runs.liveness import UNSEEN
from monitor.runs.trouble import Reason, Trouble
from sdk.ring import RingError

KEEP_ENDED_SECONDS = 600.0
"""How long a finished run stays in the snapshot."""
MAX_WORKERS = 64
"""Dead workers per rank that are kept for its loader figures."""
POLL_RECORDS = 8 * MAX_RECORDS
"""Records taken per poll from all rings, split equally among the owners."""
LEAST_RECORDS = 256
"""Every owner gets at least this many, however many owners there are."""
NO_MEMORY = "no memory"
TURN_RINGS = 16
MOST_TURNS = 4
"""Ranks of one run that are read in every poll: as many as the largest machines have GPUs. In larger runs the
ranks take turns, waiting at most `MOST_TURNS` polls, so their figures may be a few seconds old. The first
rank, which represents the run, does not wait for the others."""
FEW_RUNS = 4
CROWD_TURNS = 2
"""With more live runs than this, each is read in every other poll: nobody watches so many by the second."""
META_PER_POLL = 64
"""Rings of one owner whose new meta is read per poll: up to 62 kB of JSON each."""


class RunReader:
    """Not thread-safe: one thread both polls and queries."""

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        sink: RecordSink | None = None,
        keep_ended: float = KEEP_ENDED_SECONDS,
        run: str | None = None,
    ) -> None:
        self.trouble = Trouble()
        self.discovery = Discovery(directories, self.trouble, run)
        self.sink = sink
        self.followers: list[Follower] = []
        keep = keep_ended if run is None else math.inf  # all trainings of one command, until it ends
        self._ended = EndedRuns(keep, self.trouble)
        self._cleaner = Cleaner(sink, self.trouble) if sink is not None else None
        self._waiting: list[tuple[Found, int]] = []
        self._failed_runs: set[RunKey] = set()
        self._shown: dict[RunKey, Run] = {}
        """Live runs as of the last poll, shown again while none of their rings is read."""
        self._polls = 0

    @property
    def dropped(self) -> dict[str, int]:
        """What was left out and why → how many; empty if nothing was."""
        waiting = Counter({"waiting": sum(self.discovery.waiting.values())})
        found = self.trouble.totals() + waiting
        return {f"rings.{reason}": count for reason, count in sorted(found.items()) if count > 0}

    # ── Reading ──

    def poll(self, now: Moment) -> None:
        """Find new rings, read new records, pass them to the sink, drop old rings. Never raises."""
        self.discovery.look()
        self._make_room()
        waiting, self._waiting = self._waiting, []
        for found, tries in [*((one, 0) for one in self.discovery.take()), *waiting]:
            self._follow(found, tries, now)
        self._poll_all(now)
        if self.sink is not None:
            self.sink.commit()
        self._ended.expire(now)
        if self._cleaner is not None:
            self._cleaner.clean(now)

    def catch_up(self, now: Moment) -> None:
        """`poll`, then the rest of every ring: for who looks only once. A ring that is read in part looks as
        if its writer were still at that step."""
        self.poll(now)
        for follower in tuple(self.followers):
            before = -1
            while follower.alive and before < follower.cursor < follower.header.head:
                before = follower.cursor
                self._poll_one(follower, now, MAX_RECORDS, with_meta=True)
        if self.sink is not None:
            self.sink.commit()

    def _make_room(self) -> None:
        """Rings of the owner with the most give way to those of owners with fewer: dead ones first, then the
        newest."""
        for owner, count in self.discovery.givers().items():
            own = [one for one in self.followers if one.owner == owner]
            own.sort(key=lambda one: (one.alive, -one.header.started_mono_ns))
            for follower in own[:count]:
                follower.close()
                self.followers.remove(follower)
                if follower.alive:
                    self.discovery.put_back(follower.found)
                else:
                    self.discovery.released(follower.found)

    def _follow(self, found: Found, tries: int, now: Moment) -> None:
        try:
            self.followers.append(Follower(found, self.sink, now))
        except NotReady:
            if tries < MAX_TRIES:
                self._waiting.append((found, tries + 1))
            else:
                self._refuse(found, "broken", "its meta never became complete")
        except OtherClock:
            self._release(found)  # nothing to mend: it will be tidied away
        except MemoryError:
            os.close(found.fd)
            self.discovery.put_back(found, NO_MEMORY)
        except (RingError, OSError) as error:
            self._refuse(found, "broken", str(error))
        except Exception as error:  # noqa: BLE001 — the guard around one ring: nobody else may suffer
            self._refuse(found, "unexpected", repr(error))

    def _refuse(self, found: Found, reason: Reason, why: str) -> None:
        self.trouble.note(found.owner, reason, f"{found.candidate.name}: {why}")
        self._release(found)

    def _release(self, found: Found) -> None:
        self.discovery.closed(found)
        self.discovery.released(found)
        with contextlib.suppress(OSError):
            os.close(found.fd)

    def _poll_all(self, now: Moment) -> None:
        if not self.followers:
            return
        shares, turns, metas = self._shares(), self._turns(), Counter[int]()
        self._polls += 1
        for follower in self.followers:
            follower.waits = follower.may_wait and not self._has_turn(follower, turns)
            if follower.alive and not follower.waits:
                known, owner = follower.meta, follower.owner
                self._poll_one(follower, now, shares[owner], with_meta=metas[owner] < META_PER_POLL)
                metas[owner] += follower.meta is not known

    def _turns(self) -> dict[RunKey, tuple[int, int]]:
        """Live run → its place among them, and after how many polls all its ranks have had a turn."""
        ranks = Counter(one.run for one in self.followers if one.alive and not one.is_worker)
        turns = ((run, min(MOST_TURNS, -(-count // TURN_RINGS))) for run, count in ranks.items())
        return {run: (place, needed) for place, (run, needed) in enumerate(turns)}

    def _has_turn(self, follower: Follower, turns: Mapping[RunKey, tuple[int, int]]) -> bool:
        """The turn of its run, in which the ranks of a large one take turns again."""
        place, needed = turns.get(follower.run, (0, 1))
        every = CROWD_TURNS if len(turns) > FEW_RUNS else 1
        rounds, rest = divmod(self._polls + place, every)
        return rest == 0 and (follower.is_first or (rounds + follower.meta.rank) % -(-needed // every) == 0)

    def _shares(self) -> dict[int, int]:
        """Owner → records that may be taken from each of its rings in this poll."""
        rings = Counter(follower.owner for follower in self.followers if follower.alive)
        fair = {owner: POLL_RECORDS // len(rings) // count for owner, count in rings.items()}
        return {owner: min(MAX_RECORDS, max(LEAST_RECORDS, share)) for owner, share in fair.items()}

    def _poll_one(self, follower: Follower, now: Moment, share: int, *, with_meta: bool) -> None:
        bad = follower.counters.bad
        try:
            follower.poll(now, share, with_meta=with_meta)
        except OSError as error:
            self._try_again(follower, now, error)
        except MemoryError:
            self._start_over(follower)
            return
        except RingError as error:
            self._break_off(follower, now, "broken", str(error))
        except Exception as error:  # noqa: BLE001 — the guard around one ring: nobody else may suffer
            self._break_off(follower, now, "unexpected", repr(error))
        self.trouble.note(follower.owner, "records", follower.found.path.name, follower.counters.bad - bad)
        if not follower.alive:
            self.discovery.closed(follower.found)
            if self._cleaner is not None:
                self._cleaner.add(follower)

    def _try_again(self, follower: Follower, now: Moment, error: OSError) -> None:
        """A failed read may work at the next poll; nothing was taken, so nothing is lost."""
        follower.failures += 1
        if follower.failures < MAX_TRIES:
            self.trouble.note(follower.owner, "unreadable", f"{follower.found.path.name}: {error}")
        else:
            self._break_off(follower, now, "broken", str(error))

    def _start_over(self, follower: Follower) -> None:
        """Memory ran out while reading it, and how far we got is unknown: it is reopened from the sink's
        position."""
        follower.close()
        self.followers = [one for one in self.followers if one is not follower]
        self.discovery.put_back(follower.found, NO_MEMORY)

    def _break_off(self, follower: Follower, now: Moment, reason: Reason, why: str) -> None:
        self.trouble.note(follower.owner, reason, f"{follower.found.path.name}: {why}")
        follower.break_off(now)

    # ── Runs ──

    def pids(self) -> dict[int, tuple[str, int]]:
        """Host pids of live trainers → (run id, rank)."""
        return {
            follower.host_pid: (follower.identity.run, follower.meta.rank)
            for follower in self.followers
            if follower.alive and not follower.is_worker and follower.host_pid != UNSEEN
        }

    def runs(self, now: Moment, gpus: Sequence[Gpu], processes: Sequence[Process]) -> tuple[Run, ...]:
        """All runs in view, newest first; one that ended before anybody looked is shown once."""
        groups, orphans = group(self.followers)
        live: list[Run] = []
        shown: dict[RunKey, Run] = {}
        gone = {id(one) for one in orphans if not one.alive}
        for rings in groups:
            run = self._make(rings, now, gpus, processes)
            gone |= {id(one) for one in _not_needed(rings)}
            if rings.is_over and run is not None:
                self._ended.add(rings.key, run, max(one.ended_at or now.monotonic for one in rings.trainers))
            elif run is not None:
                live.append(run)
                shown[rings.key] = run
        self._let_go(gone)
        keys = {rings.key for rings in groups}
        self._shown = shown
        self._ended.forget_revived(keys)
        self._failed_runs &= keys
        made = sorted((*live, *self._ended.runs), key=lambda run: -run.started)
        self._ended.cut()
        return tuple(made)

    def _make(
        self, rings: Group, now: Moment, gpus: Sequence[Gpu], processes: Sequence[Process]
    ) -> Run | None:
        """The run, or None if it cannot be assembled, which is counted once and affects nobody else."""
        before = self._ended.revive(rings.key)
        shown = self._shown.get(rings.key)
        if shown is not None and all(one.waits for one in rings.trainers):
            return shown
        try:
            run = make_run(rings, now, gpus, processes, before)
        except Exception as error:  # noqa: BLE001 — the guard around one run: nobody else may suffer
            if rings.key not in self._failed_runs:
                self.trouble.note(rings.key[0], "run", f"{rings.key[1]}: {error!r}")
            self._failed_runs.add(rings.key)
            return None
        self._failed_runs.discard(rings.key)
        return run

    def _let_go(self, gone: set[int]) -> None:
        if not gone:
            return
        for follower in self.followers:
            if id(follower) in gone:
                self.discovery.released(follower.found)
        self.followers = [one for one in self.followers if id(one) not in gone]

    def close(self) -> None:
        for follower in self.followers:
            follower.close()
        for found, _ in self._waiting:
            with contextlib.suppress(OSError):
                os.close(found.fd)
        self.discovery.close()
        self.followers = []


def _not_needed(rings: Group) -> list[Follower]:
    """Rings that are no longer needed: all of a finished run; otherwise dead ones of ranks with a newer ring,
    and all but the newest dead workers of a rank."""
    if rings.is_over:
        return [one for one in rings.followers if not one.alive]
    workers: Counter[int] = Counter()
    surplus = [one for one in rings.older if not one.alive]
    for worker in reversed(rings.workers):
        workers[worker.meta.rank] += not worker.alive
        if not worker.alive and workers[worker.meta.rank] > MAX_WORKERS:
            surplus.append(worker)
    return surplus
