"""Which line a sample means that the interpreter took a few instructions late.

A thread that reads its own stack does so at the interpreter's next check for requests: after a call, at the
end of a loop's body, at the beginning of a function. The time was spent somewhere since the check before that
one. Only if all work that may take long between the two is on one line, or in one loop, does the sample
single out a line.
"""

from __future__ import annotations

import linecache
import opcode
import re
from collections.abc import Callable, Iterator
from types import CodeType

_CHECKS = ("RESUME", "CALL", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
_NO_CHECKS = ("CALL_INTRINSIC", "JUMP_BACKWARD_NO_INTERRUPT")
_WORK = (
    *("BINARY", "CALL", "COMPARE", "CONTAINS", "DELETE", "DICT", "FORMAT", "IMPORT", "LIST"),
    *("PRECALL", "SET", "STORE_SLICE", "STORE_SUBSCR", "UNARY", "UNPACK_EX"),
)
"""Instructions that may run long, besides those that ask for a loop's next value."""
_LEAVES = ("RETURN", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD")
"""Instructions after which the next one does not follow."""
_COUNTS = re.compile(r"\bin range\(|\.(?:items|keys|values)\(\)\s*:")
"""A loop over numbers, or over a dictionary: asking for the next one takes no time."""


class Code:
    """The instructions of a function: which may come before which."""

    def __init__(self, code: CodeType, line: Callable[[int], int]) -> None:
        self._file = code.co_filename
        self._line = line
        self._names = dict(_instructions(code.co_code))
        self._before: dict[int, list[int]] = {}
        self._ends: dict[int, int] = {}
        """Where each loop ends, by the instruction that asks for its next value."""
        self._follow(code.co_code)

    def begins(self, offset: int) -> bool:
        """At the check before a function's first instruction: its caller spent the time."""
        return self._names.get(offset, "") == "RESUME"

    def line(self, offset: int) -> int:
        """The line a check at this instruction singles out; 0 if it may have been several."""
        since = self._since(offset)
        lines = {self._line(at) for at in since if self._names[at].startswith(_WORK)}
        heads = {self._line(at) for at in since if self._ends.get(at, 0) > offset}
        lines |= {at for at in heads if not _COUNTS.search(linecache.getline(self._file, at))}
        if len(lines) < 2:
            return next(iter(lines), self._line(offset))
        return min(lines) if min(lines) in heads else 0

    def _since(self, offset: int) -> set[int]:
        """This instruction and those that may have run since the check before it."""
        found = {offset} & self._names.keys()
        new = list(found)
        while new:
            before = {one for one in self._before.get(new.pop(), ()) if not _checks(self._names[one])} - found
            found |= before
            new += before
        return found

    def _follow(self, code: bytes) -> None:
        """Note for each instruction which ones may come before it."""
        order = list(self._names)
        wide = 0
        for at, after in zip(order, [*order[1:], len(code)], strict=True):
            name, argument = self._names[at], wide << 8 | code[at + 1]
            wide = argument if name == "EXTENDED_ARG" else 0
            if not name.startswith(_LEAVES):
                self._before.setdefault(after, []).append(at)
            if code[at] in opcode.hasjrel:
                target = after + (-2 if "BACKWARD" in name else 2) * argument
                self._before.setdefault(target, []).append(at)
                if name == "FOR_ITER":
                    self._ends[at] = target


def _checks(name: str) -> bool:
    return name.startswith(_CHECKS) and not name.startswith(_NO_CHECKS)


def _instructions(code: bytes) -> Iterator[tuple[int, str]]:
    """Offset and name of each instruction, without the interpreter's caches between them."""
    for at in range(0, len(code), 2):
        name = opcode.opname[code[at]]
        if name != "CACHE":
            yield at, name
