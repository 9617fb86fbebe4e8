"""Stacks of other threads: read completely, named well, and never dangerous."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from sdk.sampling._stacks import Frame, StackReader, parse
from sdk.structure.source import qualified
from tests.conftest import PATIENCE


def test_a_stack_is_read_innermost_first() -> None:
    begun, end = threading.Event(), threading.Event()

    def outer() -> None:
        begun.set()
        end.wait(10)

    thread = threading.Thread(target=outer)
    thread.start()
    begun.wait(10)
    reader = StackReader(thread.ident or 0)
    frames = reader.read()
    end.set()
    thread.join(10)
    names = [frame.name for frame in frames]
    assert names.index("wait") < names.index("outer") < names.index("run")
    assert all(frame.line > 0 for frame in frames)
    assert reader.read() == [], "the thread has ended"
    reader.close()


def test_names_that_are_not_ascii() -> None:
    text = (
        b'Thread 0x0000000000000001 (most recent call first):\n  File "/d\\u6570/a.py", line 3 in caf\\xe9\n'
    )
    assert parse(text, 1) == [Frame("/d数/a.py", 3, "café")]


def test_a_function_is_named_with_what_is_around_it(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(
        textwrap.dedent("""\
        class Files:
            def __getitem__(self, i):
                try:
                    return [x for x in range(i)]
                except ValueError as name:
                    raise

        if True:
            def late():
                return 1
        """)
    )
    assert qualified(str(file), 4, "__getitem__") == "Files.__getitem__"
    assert qualified(str(file), 4, "<listcomp>") == "Files.__getitem__.<listcomp>"
    assert qualified(str(file), 10, "late") == "late"
    assert qualified(str(file), 9, "<module>").endswith("<module>")
    assert qualified("<stdin>", 1, "f") == "f"


CHURN = """
import sys, threading, time
from sdk.sampling.hotspots import Hotspots

def numbers(depth):
    for n in range(3):
        yield from numbers(depth - 1) if depth else [n]

class Loop:
    phase = 0

spots = Hotspots(threading.get_ident(), Loop(), lambda phase: "data")
total = 0
while total < int(sys.argv[1]) or not spots.samples:
    total += spots.samples
    spots.forget()
    spots.start(0.00002)
    for _ in range(200):
        sum(numbers(4))
    spots.step()
spots.stop()
spots.step()
print(len(spots.evaluate().result()) > 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("pure", "samples"), [("0", "3000"), ("1", "30")])
def test_sampling_generators_that_come_and_go_does_no_harm(pure: str, samples: str) -> None:
    """Frames that yield and return while being sampled: walking them once crashed the process."""
    environment = os.environ | {"GPUMON_PURE": pure}
    done = subprocess.run(
        [sys.executable, "-c", CHURN, samples],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
