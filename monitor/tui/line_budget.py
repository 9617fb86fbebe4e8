"""How many lines of a screen each panel gets: a pure function, so that every size can be tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

TALL = 33
"""From this height a screen has room for longer lists."""


class Wants(NamedTuple):
    """How many lines a panel wants."""

    sizes: tuple[int, ...]
    """The heights it is made for, best first: it gets the first that leaves room for the others."""
    most: int = 0
    """How many lines it can use in total if some are left; 0: no more than its best size."""
    step: int = 1
    """How many lines it grows by at a time."""
    squeezed: int | None = None
    """The fewest lines it works in when there is not enough room for all; None: it is not squeezed."""
    smallest: int = 0
    """With fewer lines than this it is not worth showing."""
    takes_rest: bool = False
    """Whether it may take the lines nobody else wants; the last such panel shown gets them."""
    spaced: bool = False
    """Whether it gets a blank line below, if there is one for every such panel."""

    @property
    def least(self) -> int:
        return self.sizes[-1]


HIDDEN = Wants((0,))


class Budget(NamedTuple):
    lines: tuple[int, ...]
    """Lines of each panel; 0: not shown."""
    spaced: bool


def divide(wants: Sequence[Wants], height: int) -> Budget:
    """Every panel gets its size; remaining lines let them grow, from the bottom up."""
    lines = _sizes(wants, height)
    left = height - sum(lines)
    if left < 0:
        return Budget(tuple(_squeezed(wants, lines, -left)), spaced=False)
    blanks = sum(want.spaced for want in wants)
    spaced = blanks <= left
    _grow(wants, lines, left - blanks * spaced)
    return Budget(tuple(lines), spaced)


def _sizes(wants: Sequence[Wants], height: int) -> list[int]:
    spare = max(0, height - sum(want.least for want in wants))
    out = []
    for want in wants:
        out.append(next(size for size in want.sizes if size - want.least <= spare))
        spare -= out[-1] - want.least
    return out


def _squeezed(wants: Sequence[Wants], lines: Sequence[int], missing: int) -> list[int]:
    """Upper panels shrink first, because findings and fixes are further down."""
    out = []
    for want, size in zip(wants, lines, strict=True):
        given = 0 if want.squeezed is None else max(0, min(missing, size - want.squeezed))
        missing -= given
        out.append(size - given)
    return out


def _grow(wants: Sequence[Wants], lines: list[int], left: int) -> None:
    for at in reversed(range(len(wants))):
        want = wants[at]
        more = max(0, min(left, want.most - lines[at]) // want.step * want.step)
        if lines[at] >= want.sizes[0] and lines[at] + more >= want.smallest:
            lines[at] += more
            left -= more
    filling = [at for at, want in enumerate(wants) if want.takes_rest and lines[at]]
    if filling:
        lines[filling[-1]] += left
