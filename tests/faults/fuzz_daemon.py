"""`make fuzz`: mutated rings through a real daemon, with an honest run beside them.

    python -m tests.faults.fuzz_daemon [--rings 2000] [--seed 1] [--record]

Half of the mutants have a live process behind them, and if we are root they belong to another user. After
every batch the honest run has all its steps, every collector works, `/metrics` answers, and the daemon met
nothing it does not know.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import tempfile
from pathlib import Path

from monitor.model.snapshot import Snapshot
from tests.conftest import wait_for
from tests.faults import page
from tests.faults.fuzz import STEPS, honest
from tests.faults.mutate import Mutant
from tests.faults.people import MALLORY
from tests.integration.daemon.process import Daemon

BATCH = 200
OUR_MISTAKES = ("unexpected", "run", "row")


def fuzz(folder: Path, rings: int, seed: int = 1) -> int:
    """The number of mutants the daemon has seen. Raises `AssertionError` if anybody suffers."""
    chance = random.Random(seed)
    place = folder / "rings"
    place.mkdir()
    place.chmod(0o1777)
    with Daemon(folder, "--source", "simulated", "--gpus", "2", interval="0.1") as daemon:
        writer = honest(place)
        for first in range(0, rings, BATCH):
            count = min(BATCH, rings - first)
            show(daemon, place, [Mutant(chance, f"m{first + at}") for at in range(count)])
        assert "Traceback" not in daemon.log, daemon.log
        writer.close()
    return rings


def show(daemon: Daemon, place: Path, mutants: list[Mutant]) -> None:
    """Place them, let the daemon see them twice with half of them changed in between, and remove them."""
    files = [place / f"{mutant.meta_run}.0.ring" for mutant in mutants]
    held = [put(file, mutant) for file, mutant in zip(files, mutants, strict=True)]
    check(daemon)
    for file, mutant in zip(files[::2], mutants[::2], strict=True):
        with file.open("r+b") as opened:  # in place: a live writer does not switch files
            opened.write(mutant.again())
    check(daemon)
    for file, descriptor in zip(files, held, strict=True):
        file.unlink(missing_ok=True)  # the daemon may have removed a dead one
        os.close(descriptor)


def put(file: Path, mutant: Mutant) -> int:
    """Put a ring in place, as a writer would leave it; every other one is locked, as a live writer's is."""
    fresh = file.with_suffix(".tmp")
    fresh.write_bytes(mutant.encode())
    if os.geteuid() == 0:
        os.chown(fresh, MALLORY, MALLORY)
    descriptor = os.open(fresh, os.O_RDWR)
    if mutant.chance.random() < 0.5:
        fcntl.lockf(descriptor, fcntl.LOCK_EX)
    fresh.rename(file)
    return descriptor


def check(daemon: Daemon) -> None:
    """All is well in a snapshot begun after now."""
    client = daemon.client()
    begun = client.snapshot().seq + 1
    seen: Snapshot = wait_for(lambda: (one := client.snapshot()).seq > begun and one)
    (own,) = (run for run in seen.runs if run.claimed_id == "honest")
    assert (own.steps, own.lost) == (STEPS, 0) and own.live, own
    assert all(one.ok for one in seen.collectors), [one for one in seen.collectors if not one.ok]
    assert not seen.rule_errors, seen.rule_errors
    mistakes = [one for one in seen.ring_trouble if one.reason in OUR_MISTAKES]
    assert not mistakes and daemon.get("/metrics")[0] == 200, mistakes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write the result into docs/reliability.md")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpumon-fuzz-", dir="/dev/shm") as folder:
        tried = fuzz(Path(folder), chosen.rings, chosen.seed)
    print(f"{tried} mutated rings through a daemon: the honest run always in view")
    if chosen.record:
        page.put_row(
            "fuzz", "mutated rings through a daemon", f"{tried:,}", "the honest run always in view, whole"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
