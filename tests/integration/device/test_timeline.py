"""The device's time: asynchronous launches, events, streams, the queue, copies, and waits of the host."""

from __future__ import annotations

import json
from typing import Any

from tests import device
from tests.device import Speeds

SLOW = Speeds(kernels_us={"add": 5000}, pinned_gb_s=0.1, copy_us=0)


def answers(code: str, speeds: Speeds = SLOW) -> dict[str, Any]:
    """Run code that prints one JSON object."""
    result = device.run_code("import json, time, torch\n" + code, speeds)
    assert result.returncode == 0, result.stderr
    made: dict[str, Any] = json.loads(result.stdout)
    return made


def test_the_host_runs_ahead_and_events_tell_device_time() -> None:
    got = answers("""
x = torch.ones(4, device="cuda")
a, b = torch.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
c = torch.Event(enable_timing=True)
torch.cuda.synchronize()
begin = time.perf_counter()
a.record()
for _ in range(100): y = x + 1
b.record(); c.record()
launched = time.perf_counter() - begin
fired = b.query()
b.synchronize()
waited = time.perf_counter() - begin
device = a.elapsed_time(c)
print(json.dumps(dict(launched=launched, fired=fired, after=b.query(), waited=waited, device=device)))
""")
    assert got["launched"] < 0.8 * got["waited"], "100 launches of 5 ms each"
    assert not got["fired"]
    assert got["after"]
    assert got["waited"] >= 0.499
    assert 495 < got["device"] < 520 + 1e3 * got["launched"]


def test_a_full_queue_holds_the_host() -> None:
    code = """
x = torch.ones(4, device="cuda")
torch.cuda.synchronize()
begin = time.perf_counter()
for _ in range(60): y = x + 1
print(json.dumps(time.perf_counter() - begin))
"""
    short = Speeds(kernels_us={"add": 5000}, queue_length=10)
    assert answers(code, short) >= 0.9 * 50 * 0.005  # type: ignore[operator]


def test_reading_a_value_waits_for_it() -> None:
    got = answers("""
x = torch.ones(4, device="cuda")
def timed(read):
    torch.cuda.synchronize()
    y = x + 1
    for _ in range(9): y = y + 1
    begin = time.perf_counter()
    read(y)
    return time.perf_counter() - begin
reads = dict(item=lambda y: y[0].item(), cpu=lambda y: y.cpu(), tolist=lambda y: y.tolist(),
             bool=lambda y: bool(y[0]), nonzero=lambda y: y.nonzero(), mask=lambda y: y[y > 3],
             unique=lambda y: y.unique(), equal=lambda y: torch.equal(y, x), print=lambda y: str(y))
print(json.dumps({name: timed(read) for name, read in reads.items()}))
""")
    for name, seconds in got.items():
        assert seconds > 0.8 * 0.050, name


def test_copies_from_pinned_memory_run_beside_kernels() -> None:
    got = answers("""
host = torch.ones(1_000_000).pin_memory()  # 4 MB at 0.1 GB/s: 40 ms
x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
def total(overlap):
    torch.cuda.synchronize()
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    if overlap:
        with torch.cuda.stream(side): host.to("cuda", non_blocking=True)
    else: host.to("cuda", non_blocking=True)
    for _ in range(20): y = x + 1
    torch.cuda.current_stream().wait_stream(side)
    b.record(); b.synchronize()
    return a.elapsed_time(b)
total(True)
print(json.dumps(dict(one=total(False), two=total(True))))
""")
    assert got["one"] >= 139
    assert got["two"] >= 99
    assert got["one"] - got["two"] > 20


def test_kernels_of_two_streams_share_the_device() -> None:
    got = answers("""
x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
torch.cuda.synchronize()
a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
a.record()
for _ in range(10):
    y = x + 1
    with torch.cuda.stream(side): z = x + 1
torch.cuda.current_stream().wait_stream(side)
b.record(); b.synchronize()
print(json.dumps(dict(ms=a.elapsed_time(b))))
""")
    assert got["ms"] >= 99


def test_pageable_memory_holds_the_host_and_pinned_memory_does_not() -> None:
    got = answers(
        """
plain, pinned = torch.ones(1_000_000), torch.ones(1_000_000).pin_memory()
def host_time(tensor):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    tensor.to("cuda", non_blocking=True)
    return time.perf_counter() - begin
host_time(plain), host_time(pinned)
print(json.dumps(dict(plain=host_time(plain), pinned=host_time(pinned))))
""",
        Speeds(pinned_gb_s=0.02, pageable_gb_s=0.02),
    )
    assert got["plain"] >= 0.2
    assert got["pinned"] < 0.5 * got["plain"]


def test_other_threads_run_while_one_waits_for_the_device() -> None:
    got = answers("""
import threading
x = torch.ones(4, device="cuda")
count = [0]
def counting():
    while not done: count[0] += 1; time.sleep(0.001)
done = False
thread = threading.Thread(target=counting); thread.start()
for _ in range(60): x = x + 1
before = count[0]; x[0].item(); counted = count[0] - before
done = True; thread.join()
print(json.dumps(dict(counted=counted)))
""")
    assert got["counted"] > 10
