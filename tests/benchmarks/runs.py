"""What reading and storing runs costs: CPU of a tick at 1,000 steps/s × 4 ranks, idle rings, the store, and
runs that come and go.

    python -m tests.benchmarks.runs [--churn]   (--churn: print that part alone, record nothing)

Rings are filled between the ticks with steps of realistic jitter; only the reader's own CPU time is
counted. The peer for the store is the plain design: one SQLite row a step.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import tracemalloc
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.model.clock import Moment
from monitor.runs.ended import MAX_ENDED_PER_OWNER
from monitor.runs.reader import RunReader
from monitor.store.store import Store
from sdk import ring
from sdk.writer import RingWriter
from tests.unit.store.made import file_bytes

RANKS, STEPS, TICKS, IDLE = 4, 1000, 30, 256
CPU_BUDGET = 0.01
RECORD_BUDGET_US = 2.0
OUT = Path(__file__).parents[2] / "docs" / "benchmarks"


class Feed:
    """One rank's ring, filled a second's worth of steps at a time on a clock of its own."""

    def __init__(self, directory: Path, rank: int, run: str = "bench") -> None:
        meta = {"kind": "trainer", "run": run, "rank": rank, "world": RANKS, "name": "bench"}
        self.writer = RingWriter(str(directory / f"{run}.{rank}.ring"), meta)
        self.clock = 1000 * 10**9
        self.chance = random.Random(rank)

    def second(self) -> None:
        record = array("Q", ring.EMPTY_RECORD)
        for _ in range(STEPS):
            took = int(1e6 * self.chance.lognormvariate(0.0, 0.1))
            record[ring.W_BEGIN], record[ring.W_END] = self.clock, self.clock + took
            self.clock += took
            record[ring.W_SAMPLES], record[ring.W_OVERHEAD] = 32, 4000
            for phase, share in ((0, 0.2), (1, 0.05), (2, 0.25), (3, 0.35), (4, 0.1)):
                record[ring.W_PHASES + phase] = int(took * share * self.chance.uniform(0.9, 1.0))
            record[ring.W_LOSS] = ring.float_bits(self.chance.random())
            self.writer.commit(record)


def cpu(work: Callable[[], Any]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def ticks(directory: Path, store: Store | None) -> dict[str, float]:
    """CPU of `TICKS` ticks of poll and runs, with or without a store."""
    feeds = [Feed(directory, rank) for rank in range(RANKS)]
    reader = RunReader([directory], sink=store)
    polls, makes = [], []
    for _ in range(TICKS):
        for feed in feeds:
            feed.second()
        clock = max(feed.clock for feed in feeds) / 1e9
        now = Moment(clock + 1.7e9, clock)
        gc.collect()
        polls.append(cpu(lambda now=now: reader.poll(now)))  # type: ignore[misc]
        makes.append(cpu(lambda now=now: reader.runs(now, (), ())))  # type: ignore[misc]
    lost = sum(follower.counters.lost for follower in reader.followers)
    reader.close()
    for feed in feeds:
        feed.writer.close()
    tick = statistics.median(p + m for p, m in zip(polls, makes, strict=True))
    return {
        "tick_ms": tick * 1e3,
        "record_us": statistics.median(polls) / (RANKS * STEPS) * 1e6,
        "runs_ms": statistics.median(makes) * 1e3,
        "cpu_percent_at_1s": tick * 100,
        "lost": float(lost),
    }


def idle(directory: Path) -> float:
    """CPU µs a tick and ring, when nothing happens."""
    writers = []
    for at in range(IDLE):
        meta = {"kind": "trainer", "run": f"idle-{at}", "rank": 0, "name": "idle"}
        writers.append(RingWriter(str(directory / f"idle-{at}.0.ring"), meta, slots=16))
    reader = RunReader([directory])
    reader.poll(Moment.now())
    rounds = 20

    def poll() -> None:
        for _ in range(rounds):
            reader.poll(Moment.now())

    took = cpu(poll)
    reader.close()
    for writer in writers:
        writer.close()
    return took / rounds / IDLE * 1e6


def churn(directory: Path, runs: int) -> dict[str, float]:
    """`runs` short runs one after the other, each read while it lives and after it has ended: what one
    that is over costs in memory and in every tick, beside one that lives and does nothing."""
    feed = Feed(directory, 0, "first")
    reader = RunReader([directory], keep_ended=float("inf"))
    tick(reader)
    tracemalloc.start()
    begin = tracemalloc.get_traced_memory()[0]
    for _ in range(3):
        feed.second()
    tick(reader)
    live = tracemalloc.get_traced_memory()[0] - begin
    begin = tracemalloc.get_traced_memory()[0]
    for at in range(runs):
        short = Feed(directory, 0, f"short-{at}")
        short.second()
        short.writer.close()
        tick(reader)
        (directory / f"short-{at}.0.ring").unlink()
    ended = tracemalloc.get_traced_memory()[0] - begin
    tracemalloc.stop()
    took = statistics.median(cpu(lambda: tick(reader)) for _ in range(20))
    kept = len(reader.runs(Moment.now(), (), ())) - 1
    reader.close()
    feed.writer.close()
    return {
        "runs": runs,
        "in_view": kept,
        "bytes": ended / runs,
        "live_bytes": live,
        "tick_us": took * 1e6 / kept,
    }


def tick(reader: RunReader) -> None:
    now = Moment.now()
    reader.poll(now)
    reader.runs(now, (), ())


def churned() -> list[dict[str, float]]:
    """For few runs, as many as stay in view, and many more: memory must not follow the number."""
    sizes = (MAX_ENDED_PER_OWNER // 4, MAX_ENDED_PER_OWNER, 4 * MAX_ENDED_PER_OWNER)
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            found.append(churn(Path(name), size))
    return found


def row_store(path: Path, rows: int) -> dict[str, float]:
    """The peer: one integer-µs row a step, in batches of a second."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = NORMAL")
    columns = ", ".join(f"c{at} INTEGER" for at in range(8))
    database.execute(
        f"CREATE TABLE steps (ring INTEGER, n INTEGER, {columns}, PRIMARY KEY (ring, n)) WITHOUT ROWID"
    )
    chance = random.Random(1)
    made = [(1, n, *(int(chance.uniform(100, 400)) for _ in range(8))) for n in range(rows)]

    def write() -> None:
        for start in range(0, rows, STEPS):
            database.execute("BEGIN")
            database.executemany(
                f"INSERT INTO steps VALUES ({', '.join('?' * 10)})", made[start : start + STEPS]
            )
            database.execute("COMMIT")

    took = cpu(write)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return {"us_per_step": took / rows * 1e6, "bytes_per_step": file_bytes(path) / rows}


def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for folder in ("plain", "stored", "idle"):
            (place / folder).mkdir()
        plain = ticks(place / "plain", None)
        store = Store(place / "history.db")
        stored = ticks(place / "stored", store)
        store.close()
        steps = RANKS * STEPS * TICKS
        database = sqlite3.connect(place / "history.db")
        packed = database.execute("SELECT sum(length(columns)) FROM chunks").fetchone()[0]
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        ours = {
            "us_per_step": stored["record_us"] - plain["record_us"],
            "bytes_per_step": file_bytes(place / "history.db") / steps,
            "packed_bytes_per_step": packed / steps,
        }
        return {
            "command": "python -m tests.benchmarks.runs",
            "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
            "reader": plain,
            "reader_with_store": stored,
            "idle_ring_us": idle(place / "idle"),
            "store": ours,
            "row_per_step": row_store(place / "rows.db", 30_000),
            "churn": churned(),
        }


def report(found: dict[str, Any]) -> str:
    lines = [
        "# Cost of reading and storing runs",
        "",
        f"`{found['command']}`, {found['date']}: {RANKS} ranks × {STEPS} steps/s, {TICKS} ticks of 1 s,"
        f" medians of CPU time; {IDLE} idle rings.",
        "",
        "| | reader | reader + store |",
        "|---|---|---|",
    ]
    for key, value in found["reader"].items():
        lines.append(f"| {key} | {value:.2f} | {found['reader_with_store'][key]:.2f} |")
    ours, rows = found["store"], found["row_per_step"]
    lines += [
        "",
        f"An idle ring: {found['idle_ring_us']:.1f} µs a tick. Reader budget: {CPU_BUDGET:.0%} of a core,"
        f" {RECORD_BUDGET_US:g} µs a record.",
        "",
        "| store, per step (5 phases) | packed batches (ours) | a row a step |",
        "|---|---|---|",
        f"| CPU µs | {ours['us_per_step']:.2f} | {rows['us_per_step']:.2f} |",
        f"| bytes on disk | {ours['bytes_per_step']:.1f} | {rows['bytes_per_step']:.1f} |",
        "",
        *churn_report(found["churn"]),
    ]
    return "\n".join(lines)


def churn_report(found: list[dict[str, float]]) -> list[str]:
    lines = [
        "Runs of a second that come and go, one a tick. At most "
        f"{MAX_ENDED_PER_OWNER} of one user stay in view, so bytes a run fall with their number:",
        "",
        "| runs | ended runs in view | bytes a run | of a live run's | µs a tick and ended run |",
        "|---|---|---|---|---|",
    ]
    for one in found:
        share = f"{one['bytes'] / one['live_bytes']:.0%}"
        counts = f"{one['runs']:.0f} | {one['in_view']:.0f} | {one['bytes']:.0f}"
        lines.append(f"| {counts} | {share} | {one['tick_us']:.1f} |")
    return [*lines, ""]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="what reading and storing runs costs")
    parser.add_argument("--churn", action="store_true", help="only runs that come and go; record nothing")
    if parser.parse_args(words or []).churn:
        print("\n".join(churn_report(churned())))
        return 0
    found = measure()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "runs.json").write_text(json.dumps(found, indent=2) + "\n")
    (OUT / "runs.md").write_text(report(found))
    print(report(found))
    return int(found["reader"]["cpu_percent_at_1s"] > CPU_BUDGET * 100 or found["reader"]["lost"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
