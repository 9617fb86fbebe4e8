"""Stacks of other threads: read whole, named well, and never dangerous."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

from sdk.place import qualified
from sdk.stacks import Frame, StackReader, parse


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
    assert parse(text, b"hread 0x0000000000000001 ") == [Frame("/d数/a.py", 3, "café")]


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
    assert qualified(Frame(str(file), 4, "__getitem__")) == "Files.__getitem__"
    assert qualified(Frame(str(file), 4, "<listcomp>")) == "Files.__getitem__.<listcomp>"
    assert qualified(Frame(str(file), 10, "late")) == "late"
    assert qualified(Frame(str(file), 9, "<module>")).endswith("<module>")
    assert qualified(Frame("<stdin>", 1, "f")) == "f"


CHURN = """
import sys, threading, time
from sdk.hotspots import Hotspots

def numbers(depth):
    for n in range(3):
        yield from numbers(depth - 1) if depth else [n]

spots = Hotspots(threading.get_ident(), lambda: "data")
end = time.monotonic() + 4.0
while time.monotonic() < end:
    spots.looks = 0
    spots.start(0.00002)
    for _ in range(200):
        sum(numbers(4))
    spots.step()
spots.stop()
print(len(spots.result()) > 0)
"""


def test_looking_at_generators_that_come_and_go_does_no_harm() -> None:
    """Frames that yield and return under the looker's eyes: walking them ended the process once."""
    done = subprocess.run([sys.executable, "-c", CHURN], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
