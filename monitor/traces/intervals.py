"""Time sets as sorted lists of disjoint intervals: union, intersection, difference, length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

Interval = tuple[int, int]
Intervals = list[Interval]


def union(intervals: Iterable[Interval]) -> Intervals:
    """Any intervals, in any order, as a time set."""
    merged: Intervals = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        elif end > begin:
            merged.append((begin, end))
    return merged


def intersection(one: Intervals, other: Intervals) -> Intervals:
    found: Intervals = []
    at = 0
    for begin, end in one:
        while at < len(other) and other[at][1] <= begin:
            at += 1
        look = at
        while look < len(other) and other[look][0] < end:
            found.append((max(begin, other[look][0]), min(end, other[look][1])))
            look += 1
    return found


def difference(one: Intervals, other: Intervals) -> Intervals:
    """The part of `one` that is not in `other`."""
    left: Intervals = []
    at = 0
    for begin, end in one:
        while at < len(other) and other[at][1] <= begin:
            at += 1
        look = at
        while look < len(other) and other[look][0] < end:
            if other[look][0] > begin:
                left.append((begin, other[look][0]))
            begin = max(begin, other[look][1])
            look += 1
        if begin < end:
            left.append((begin, end))
    return left


def length_within(merged: Intervals, window: Interval) -> int:
    """How much of a set lies inside one interval."""
    at = max(0, bisect_left(merged, (window[0],)) - 1)
    found = 0
    while at < len(merged) and merged[at][0] < window[1]:
        found += max(0, min(merged[at][1], window[1]) - max(merged[at][0], window[0]))
        at += 1
    return found


def gaps(merged: Intervals) -> Intervals:
    """The time between the intervals of a set."""
    return [(before[1], after[0]) for before, after in pairwise(merged)]


def length(merged: Intervals) -> int:
    return sum(end - begin for begin, end in merged)
