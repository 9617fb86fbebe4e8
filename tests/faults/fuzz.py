"""`make fuzz`: mutated rings through reader, facts, advice, metrics and history, an honest run beside them.

    python -m tests.faults.fuzz --rings 100000 [--seed 1]

Whatever the mutants are, the honest run is visible with all its steps, every face can be made from the
snapshot, and no guard had to catch a mistake of ours (`unexpected` and `run` in the counts, a failed rule).
"""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from monitor.advice.engine import Engine
from monitor.model import facts
from monitor.model.clock import Moment
from monitor.model.gpu import Gpu, Source
from monitor.model.host import Host
from monitor.model.snapshot import Snapshot, decode, encode
from monitor.runs.reader import RunReader
from monitor.store.store import Store
from monitor.web.exposition import Writer
from monitor.web.families import FAMILIES
from monitor.web.families.base import Limits, Own, make_scene
from sdk import ring
from sdk.writer import RingWriter
from tests.faults import page
from tests.faults.mutate import Mutant

BATCH = 100
STEPS = 50
GPUS = tuple(Gpu(index=at, uuid=f"GPU-{at}{at}{at}{at}-abcd", utilization_ratio=0.5) for at in range(2))
METRICS = Writer(FAMILIES, openmetrics=False)


def honest(folder: Path) -> RingWriter:
    """A run that nobody may hide."""
    meta = {"kind": "trainer", "run": "honest", "rank": 0, "name": "honest"}
    writer = RingWriter(str(folder / "honest.0.ring"), meta, slots=64)
    for _ in range(STEPS):
        record = ring.EMPTY_RECORD[:]
        record[ring.W_END] = time.monotonic_ns()
        record[ring.W_BEGIN] = record[ring.W_END] - 10**6
        writer.commit(record)
    return writer


def batch(seed: int, count: int = BATCH) -> list[str]:
    """`count` mutants through one reader; returns new kinds of trouble, if any. Raises `AssertionError` if
    the honest run suffers."""
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="gpumon-fuzz-", dir=_memory()))
    writer = honest(folder)
    store = Store(folder / "history.db") if seed % 4 == 0 else None
    bench = Bench(RunReader([folder], sink=store), store)
    try:
        mutants = [Mutant(chance, f"m{at % 70}") for at in range(count)]
        for at, mutant in enumerate(mutants):
            (folder / f"m{at}.0.ring").write_bytes(mutant.encode())
        bench.look()
        for at, mutant in enumerate(mutants[: count // 2]):
            (folder / f"m{at}.0.ring").write_bytes(mutant.again())
        bench.look()
        return [*bench.look(), *bench.unknown()]
    finally:
        bench.reader.close()
        writer.close()
        if store is not None:
            store.close()
        shutil.rmtree(folder)


class Bench:
    """A reader and everything made from what it reads, as in a daemon's tick but without its guards."""

    def __init__(self, reader: RunReader, store: Store | None) -> None:
        self.reader = reader
        self.store = store
        self.engine = Engine()
        self.seq = 0

    def look(self) -> list[str]:
        """One tick; returns the rules that have failed so far."""
        now = Moment.now()
        self.seq += 1
        self.reader.poll(now)
        runs = self.reader.runs(now, GPUS, ())
        (own,) = (run for run in runs if run.id == "honest")
        assert (own.steps, own.lost) == (STEPS, 0) and own.state in ("running", "stalled"), own
        source = Source("simulated", ok=True)
        found = Snapshot(self.seq, now.wall, now.monotonic, 1.0, source, Host("here"), gpus=GPUS, runs=runs)
        whole = facts.judge(self.engine.evaluate(facts.join(found)))
        assert decode(encode(whole)).runs and METRICS.render(make_scene(whole, Own(), Limits()))
        if self.store is not None:
            self.store.append(whole)
            assert self.store.error is None, self.store.error
        return [f"rule {rule}" for rule in whole.rule_errors]

    def unknown(self) -> list[str]:
        counts = self.reader.trouble.counts()
        return [f"{one.reason}: {one.example}" for one in counts if one.reason in ("unexpected", "run")]


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rings", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="the first batch's; batch n has seed + n")
    parser.add_argument("--record", action="store_true", help="write the result into docs/reliability.md")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    begin, batches = time.monotonic(), -(-chosen.rings // BATCH)
    for seed in range(chosen.seed, chosen.seed + batches):
        unknown = batch(seed)
        if unknown:
            print(f"seed {seed}: {unknown}")
            return 1
    tried, took = batches * BATCH, time.monotonic() - begin
    print(f"{tried} mutated rings in {took:.0f} s: the honest run always in view")
    if chosen.record:
        what = "mutated rings through reader, advice, metrics and history"
        page.put_row("fuzz", what, f"{tried:,}", "the honest run always in view, whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
