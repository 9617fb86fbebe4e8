"""Programs that the tests really start: a writer of steps, and a reader with a store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[3]

WRITER = """
import sys, time
from array import array
from sdk import ring
from sdk.writer import RingWriter
path, total, pause, most = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
import os
os.environ["GPUMON_RING_BYTES"] = str(most)
run, rank = os.path.basename(path).split(".")[:2]
writer = RingWriter(path, {"kind": "trainer", "run": run, "rank": int(rank), "name": "w"}, slots=64)
record = array("Q", ring.EMPTY_RECORD)
last = time.monotonic_ns()
for number in range(1, total + 1):
    now = time.monotonic_ns()
    record[ring.W_BEGIN], record[ring.W_END], last = last, now, now
    record[ring.W_SAMPLES] = 2
    record[ring.W_PHASES] = (now - record[ring.W_BEGIN]) // 2
    writer.commit(record)
    writer.words[ring.H_LIVE] = ring.pack_live(3, now)
    if pause:
        time.sleep(pause)
print("done", flush=True)
sys.stdin.readline()
writer.close()
"""

READER = """
import sys, time
from pathlib import Path
from monitor.model.clock import Moment
from monitor.runs.reader import RunReader
from monitor.store.store import Store
store = Store(Path(sys.argv[2]))
reader = RunReader([Path(sys.argv[1])], sink=store)
while True:
    reader.poll(Moment.now())
    time.sleep(0.002)
"""


@contextmanager
def program(source: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    """A child that is gone at the end, whatever happens."""
    child = subprocess.Popen(
        [sys.executable, "-c", source, *map(str, args)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=PATIENCE)


def finish(child: subprocess.Popen[str]) -> None:
    """Let the writer close its ring and end."""
    child.communicate("\n", timeout=PATIENCE)
