"""Which line a sample names: the one where the time was spent, or none."""

from __future__ import annotations

import opcode
import threading
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from sdk.sampling._samplers import BestSampler, FaulthandlerSampler, Lines
from tests.conftest import undisturbed

LETTERS = b"x" * 10_000
"""Long enough that computing its checksum releases the interpreter lock."""


class Subject:
    phase = 0


def counted(i: int) -> Any:
    total = 0.0
    for k in range(3000):
        total += (i * k) % 7
    return zlib.crc32(LETTERS), total


def called(i: int) -> Any:
    return [zlib.crc32(LETTERS), helped(i)]


def helped(i: int) -> float:
    total = 0.0
    for k in range(3000):
        total += (i * k) % 7
    return total


def trivial_behind(values: list[int]) -> None:
    for _ in range(9):
        values = values + values
        rest = 1
    del rest


def two_lines(values: list[int]) -> None:
    for _ in range(9):
        print(1)
        first = values + values
        second = values + first
        print(second)


def one_loop(rows: Any) -> Any:
    for row in rows:
        total = row + row
        other = total + row
    return total, other


def either(values: list[int], flag: bool) -> Any:
    print(1)
    if flag:
        found = values + values
    else:
        found = sorted(values)
    other = 2
    return print(found, other)


def sampled(
    work: Callable[[int], Any], kind: Any = BestSampler, seconds: int = 10
) -> Counter[tuple[str, int]]:
    """CPU nanoseconds by function and by line in it; line 0 if no line is singled out."""
    sampler, lines = kind(Subject(), threading.get_ident()), Lines()
    is_main = threading.current_thread() is threading.main_thread()
    thread = threading.Thread(target=sampler.run, args=(400_000, seconds * 10**9, 150, is_main, -1))
    thread.start()
    times = 0
    while thread.is_alive():
        times += 1
        work(times)
    found: Counter[tuple[str, int]] = Counter()
    for _, _, cpu, _, _, when, stack in sampler.take():
        frames, sure = lines.read(when, stack)
        own = next(one for one in frames if one.file == __file__)
        found[own.name, own.line if sure else 0] += cpu
    return found


def line(function: Any, at: int) -> int:
    return function.__code__.co_firstlineno + at


@pytest.mark.skipif(BestSampler is FaulthandlerSampler, reason="needs the sampler in C")
@undisturbed
def test_a_loop_of_python_code_is_seen_at_its_own_line() -> None:
    """GIVEN a loop before a call that releases the lock WHEN sampled THEN the call does not get its time."""
    found = sampled(counted)
    assert found["counted", line(counted, 3)] > 5 * found["counted", line(counted, 4)]
    assert found["counted", line(counted, 3)] > 0.8 * found.total()


@pytest.mark.skipif(BestSampler is FaulthandlerSampler, reason="needs the sampler in C")
@undisturbed
def test_a_called_function_keeps_its_time() -> None:
    found = sampled(called)
    assert found["helped", line(helped, 3)] > 0.8 * found.total()


@pytest.mark.slow
def test_without_the_sampler_in_c_the_line_that_gave_the_lock_away_is_not_named() -> None:
    found = sampled(counted, FaulthandlerSampler, seconds=3)  # it is slow, and so takes all of them
    assert found["counted", line(counted, 4)] < 0.5 * found.total()


def singled_out(function: Any, name: str) -> int:
    """The line, counted from the function's first, that a check at its last such instruction singles out."""
    code = function.__code__
    places = [at for at in range(0, len(code.co_code), 2) if opcode.opname[code.co_code[at]] == name]
    frames, sure = Lines().read(1, (code, places[-1]))
    return frames[0].line - code.co_firstlineno if sure else 0


def test_work_before_the_check_is_named_even_if_another_line_follows() -> None:
    assert singled_out(trivial_behind, "JUMP_BACKWARD") == 2


def test_of_two_lines_that_may_have_worked_none_is_named() -> None:
    code = two_lines.__code__
    calls = [at for at in range(0, len(code.co_code), 2) if opcode.opname[code.co_code[at]] == "CALL"]
    assert Lines().read(1, (code, calls[2]))[1] is False


def test_a_loop_is_named_by_its_head_if_more_than_a_line_of_it_may_have_worked() -> None:
    assert singled_out(one_loop, "JUMP_BACKWARD") == 1


def test_both_branches_count() -> None:
    assert singled_out(either, "CALL") == 0


def test_a_stack_read_at_the_tick_is_taken_as_it_is() -> None:
    code = two_lines.__code__
    assert Lines().read(0, (code, 0))[1] is True and Lines().read(2, (code, 0))[1] is False
