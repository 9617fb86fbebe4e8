"""The daemon's own memory: what it frees goes back to the system."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HOLES = """
import json, sys
from monitor.host.limits import steady_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

steady = sys.argv[1] == "steady" and steady_memory()
for _ in range(3):
    bytes(400_000)  # from now on glibc takes blocks of this size from its heap, unless told otherwise
before, large, small = resident(), [], []
for _ in range(100):
    large.append(bytearray(300_000))
    small.append(bytearray(2_000))
grown = resident() - before
del large
print(json.dumps([steady, grown, resident() - before]))
"""


def holes(how: str) -> tuple[bool, int, int]:
    done = subprocess.run([sys.executable, "-c", HOLES, how], capture_output=True, text=True, check=True)
    steady, grown, kept = json.loads(done.stdout)
    return steady, grown, kept


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_large_blocks_between_small_ones_are_given_back() -> None:
    """GIVEN large blocks, each followed by a small one that stays WHEN the large ones are freed THEN their
    memory goes back; left to itself the allocator would keep it."""
    steady, grown, kept = holes("steady")
    if not steady:
        pytest.skip("another allocator than glibc's")
    assert kept < grown / 10
    assert holes("as it is")[2] > grown / 2
