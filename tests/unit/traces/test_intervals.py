"""Sets of time against counting microseconds one by one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monitor.traces.intervals import (
    Interval,
    difference,
    gaps,
    intersection,
    length,
    length_within,
    union,
)

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda p: (p[0], p[0] + p[1])))


def moments(found: list[Interval]) -> set[int]:
    return {at for begin, end in found for at in range(begin, end)}


def is_canonical(found: list[Interval]) -> bool:
    return all(begin < end for begin, end in found) and all(
        one[1] < other[0] for one, other in pairwise(found)
    )


@given(intervals)
def test_union(some: list[Interval]) -> None:
    found = union(some)
    assert moments(found) == moments(some)
    assert is_canonical(found)
    assert length(found) == len(moments(some))


@given(intervals, intervals)
def test_intersection_and_difference(some: list[Interval], others: list[Interval]) -> None:
    one, other = union(some), union(others)
    assert moments(intersection(one, other)) == moments(one) & moments(other)
    assert moments(difference(one, other)) == moments(one) - moments(other)
    assert length(intersection(one, other)) + length(difference(one, other)) == length(one)


@given(intervals)
def test_gaps_fill_the_span(some: list[Interval]) -> None:
    merged = union(some)
    between = gaps(merged)
    assert not moments(between) & moments(merged)
    if merged:
        assert length(between) + length(merged) == merged[-1][1] - merged[0][0]


@given(intervals, st.tuples(st.integers(0, 60), st.integers(0, 30)))
def test_length_within(some: list[Interval], where: tuple[int, int]) -> None:
    window = (where[0], where[0] + where[1])
    assert length_within(union(some), window) == len(moments(some) & moments([window]))
