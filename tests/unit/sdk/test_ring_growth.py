"""A growing ring keeps its records, its slots and the lock that says the writer is alive."""

from __future__ import annotations

import os
import subprocess
import sys
from array import array
from pathlib import Path

from sdk import ring
from sdk.writer import RingWriter
from tests.rings import read_records

ASK = """
import fcntl, os, struct, sys
question = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
answer = fcntl.fcntl(os.open(sys.argv[1], os.O_RDONLY), fcntl.F_GETLK, question)
print(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)
"""


def _locked(path: Path) -> bool:
    """Checked like the daemon does, from another process (a process never sees its own lock)."""
    answer = subprocess.run([sys.executable, "-c", ASK, str(path)], capture_output=True, text=True)
    return answer.stdout.strip() == "True"


def test_growing_keeps_lock_and_records(tmp_path: Path) -> None:
    # GIVEN a ring of 16 slots
    path = tmp_path / "run.0.ring"
    writer = RingWriter(str(path), {}, slots=16)
    record = array("Q", ring.EMPTY_RECORD)
    # WHEN it takes more records than that
    for number in range(100):
        record[ring.W_SAMPLES] = number
        writer.commit(record)
    # THEN it has grown, no record is lost, and the writer still counts as alive
    assert _locked(path)
    writer.close()
    fd = os.open(path, os.O_RDONLY)
    header = ring.read_header(fd, os.fstat(fd).st_size)
    records, cursor, lost = read_records(fd, header)
    os.close(fd)
    assert header.slots == 128
    assert [one[ring.W_SAMPLES] for one in records] == list(range(100))
    assert (cursor, lost) == (100, 0)
