"""The trainers: runs with several ranks at a steady pace, and a run that starts and ends every so often."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[2]
RANKS, RATE, CHURN_SECONDS = 64, 100, 2.0

WRITER = """
import os, sys, time
from array import array
from sdk import ring
from sdk.writer import RingWriter

folder, runs, ranks = sys.argv[1], sys.argv[2].split(","), int(sys.argv[3])
rate, churn = float(sys.argv[4]), float(sys.argv[5])
os.makedirs(folder, exist_ok=True)
META = {"kind": "trainer", "world": ranks, "batch_size": 32, "pid": os.getpid(), "host": "soak", "way": "api"}

def opened(run, rank):
    return RingWriter(f"{folder}/{run}.{rank}.ring", {**META, "run": run, "name": run, "rank": rank})

def commit(writer, begin, end):
    record = array("Q", ring.EMPTY_RECORD)
    record[ring.W_BEGIN], record[ring.W_END], record[ring.W_SAMPLES] = begin, end, 32
    record[ring.W_PHASES] = (end - begin) // 4
    record[ring.W_PHASES + 2] = (end - begin) // 2
    writer.commit(record)

writers = [opened(run, rank) for run in runs for rank in range(ranks)]
steps, begin, number = 0, time.monotonic_ns(), 0
short, due = None, time.monotonic() + churn
os.set_blocking(0, False)
while True:
    steps += 1
    target = begin + int(1e9 / rate)
    time.sleep(max(0.0, (target - time.monotonic_ns()) / 1e9))
    now = time.monotonic_ns()
    for writer in writers:
        commit(writer, begin, now)
    if short is not None:
        commit(short, begin, now)
    begin = now
    if time.monotonic() >= due:
        due += churn
        if short is not None:
            short.close()
        number += 1
        short = opened(f"short-{number}", 0)
    if sys.stdin.read(1):
        break
for writer in [*writers, *([short] if short else [])]:
    writer.close()
print(steps, number, flush=True)
"""


class Written(tuple[int, int]):
    """Steps of each rank, and number of short runs."""


class Writers:
    """Without churn (`math.inf`), only the named runs."""

    def __init__(
        self,
        folder: Path,
        runs: Sequence[str] = ("soak",),
        ranks: int = RANKS,
        churn: float = CHURN_SECONDS,
    ) -> None:
        words = [str(folder), ",".join(runs), str(ranks), str(RATE), str(churn)]
        self._command = [sys.executable, "-c", WRITER, *words]

    def __enter__(self) -> Writers:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def stop(self) -> Written:
        out, _ = self._process.communicate("stop", timeout=PATIENCE)
        return Written(map(int, out.split()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate(timeout=PATIENCE)
