"""How long a thread was on a core: also between two timer ticks."""

from __future__ import annotations

import hashlib
import threading
import time

from sdk.sampling._thread_clock import ThreadClock


def test_a_thread_that_runs_is_seen_to_run_between_ticks() -> None:
    """GIVEN a thread that computes WHEN it is asked every half millisecond THEN hardly any asking takes it
    for one that waits: the kernel's file alone would tell so until its next tick."""
    over, page = threading.Event(), b"x" * 20_000_000

    def compute() -> None:
        while not over.is_set():
            hashlib.sha256(page)

    thread = threading.Thread(target=compute)
    thread.start()
    clock = ThreadClock(thread.ident or 0)
    first, at = clock.read()[0], time.monotonic_ns()
    last, seen = first, 0
    for _ in range(100):
        time.sleep(0.0005)
        busy, now = clock.read()[0], time.monotonic_ns()
        seen += min(busy - last, now - at)
        last, at = busy, now
    over.set()
    thread.join()
    clock.close()
    assert seen > 0.5 * (last - first), "what it had done came all at once, now and then"
