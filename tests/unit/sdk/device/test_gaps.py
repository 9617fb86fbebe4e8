"""Idle time by cause, in random programs of a host and a device, against the same program without waits."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdk.device._gaps import Activity, Kernel, Span, causes

LENGTH = st.integers(1, 3000)
PROGRAM = st.lists(
    st.one_of(
        st.tuples(st.just("host"), LENGTH),
        st.tuples(st.just("kernel"), LENGTH),
        st.tuples(st.just("copy"), LENGTH),
        st.tuples(st.just("wait"), st.just(0)),
    ),
    max_size=40,
)


@dataclass
class Played:
    """A program on one stream: launches arrive when the host gets to them, work runs in sequence."""

    now: int = 0
    done: int = 0
    idle: int = 0
    """Idle time of the device between its first and last work, copies not counted."""
    seen: Activity = field(default_factory=lambda: Activity([], [], [], []))

    def work(self, kind: str, length: int) -> None:
        begin = max(self.now, self.done)
        self.idle += begin - self.done
        if kind == "kernel":
            self.seen.kernels.append(Kernel(begin, begin + length, self.now))
        else:
            self.seen.copies.append(Span(begin, begin + length))
        self.done = begin + length

    def wait(self) -> None:
        if self.done > self.now:
            self.seen.waits.append(Span(self.now, self.done))
            self.now = self.done


def play(program: list[tuple[str, int]], waits: bool = True) -> Played:
    played = Played()
    for kind, length in [("kernel", 1), *program, ("kernel", 1)]:
        if kind == "host":
            played.now += length
        elif kind != "wait":
            played.work(kind, length)
        elif waits:
            played.wait()
    return played


@given(PROGRAM)
def test_idle_time_by_cause(program: list[tuple[str, int]]) -> None:
    """GIVEN any program THEN its gaps equal the device's idle and copy time, and without its waits the
    program is shorter by at least what they are said to cost and at most by all of them."""
    played = play(program)
    found = {name: value * 1e9 for name, value in causes(played.seen, 0, played.done, steps=1).items()}
    copied = sum(copy.end - copy.begin for copy in played.seen.copies)
    assert found["copy_idle_s"] == pytest.approx(copied)
    assert found["gap_s"] == pytest.approx(played.idle + copied)
    shorter = played.done - play(program, waits=False).done
    assert found["sync_idle_s"] <= shorter + 1e-3
    assert shorter <= min(found["wait_s"], played.idle) + 1e-3
