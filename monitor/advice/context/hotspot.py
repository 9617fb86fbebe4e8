"""A hot line of the user's code, as seen by the SDK's sampler, and the calls that led there.

A ring may contain anything: whatever is not a hotspot is dropped here, so that no rule has to check again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os.path import basename
from typing import Any

LONGEST_SHOWN = 70
"""Characters of a code line shown in a sentence."""
SHARE_LIMIT = 1.5
"""A share is a ratio of two counts and may come out slightly above 1; beyond this it is invalid."""
SINGLED_OUT = 0.8
"""Chosen: a line with this share of its function's time stands for it in a sentence."""
SAMPLE_MAKERS = ("__getitem__", "__getitems__", "__next__", "__iter__")
"""Methods of a data set that make samples."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A place in the user's code from which a hot line was reached."""

    function: str
    file: str
    line: int
    code: str = ""

    @property
    def place(self) -> str:
        return f"{basename(self.file)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A line of the user's code and its share of a phase."""

    phase: str
    function: str
    file: str
    line: int
    """0: the samples single out the function, but none of its lines."""
    share: float
    seconds: float | None
    kind: str
    code: str = ""
    """The line itself."""
    calls: float | None = None
    """How often it runs per step."""
    inside: str = ""
    """The library function in which most of it is spent."""
    callers: tuple[Caller, ...] = ()
    """The user's frames around it, innermost first."""
    constant: str = ""
    """The enclosing function that returned the same result in every sampled step."""
    random: bool = False
    """It makes a sample that is drawn at random."""
    orders: bool = False
    """It shuffles what samples are taken from, for every one of them."""
    fixed: bool = False
    """In a forward pass, and computed only from values that never change between steps."""
    no_grad: bool = False
    """Under `no_grad`: nothing is learnt from it."""
    detached: bool = False
    """In a function that the loop or the model calls and that returns tensors without gradients only, or
    computed with NumPy."""
    double: bool = False
    """In a function that returns float64 tensors with gradients."""
    job: str = ""
    """What the library function it calls does, if known: "log", "sleep"."""
    api: str = ""
    """That function."""
    blocking: bool = False
    """The function waits, or may wait, for something outside."""
    update: bool = False
    """It leads to `backward()` or the optimizer's step, or is part of them."""
    head: bool = False
    """It asks for the next batch: the time there is spent in the library."""
    removable: bool = False
    """A call on its own line whose result is not used."""
    piece: tuple[str, int] | None = None
    """(file, line) of the piece of work it belongs to."""
    polls: bool = False
    """It sleeps in a `while` loop until something has happened elsewhere."""
    batchable: tuple[str, int] | None = None
    """(file, line) of the loop around it, if no round of that loop needs an earlier one."""
    within_turns: bool = False
    """That loop is in another whose rounds need one another."""
    in_turn: bool = False
    """Its loop's rounds begin with what the one before has ended with: a decoder that reads its own words."""

    repeats: int = 0
    """Backward passes through one graph that stand together there; 1: a loop of them."""
    derives: bool = False
    """It takes gradients: a backward pass of its own, whatever calls it makes."""
    once: bool = False
    """No loop of the user's but through a stack of layers lies between it and the loop over the steps: many
    calls are many places."""

    over_operations: bool = False
    """The loop around it calls no module in its rounds, though it may be in a module's `forward` itself."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Its own function and those it was called from, without their classes."""
        names = (self.function, *(caller.function for caller in self.callers))
        return tuple(name.rpartition(".")[2] for name in names)

    @property
    def call(self) -> Caller | None:
        """Where its function was called."""
        own = (self.file, self.function)
        return next((one for one in self.callers if (one.file, one.function) != own), None)

    @property
    def place(self) -> str:
        """ "dataset.py:41", or "dataset.py" if no line of it is singled out."""
        name = basename(self.file)
        return (f"{name}:{self.line}" if self.line else name) or self.function

    @property
    def in_data_set(self) -> bool:
        """Whether the line is in the data set's own code, rather than the line that asks for the batch."""
        asked = any(name in SAMPLE_MAKERS for name in self.functions)
        return asked or (not self.head and self.function != "<module>")

    @property
    def short(self) -> str:
        """ "`decode` (dataset.py:41)", for a second mention."""
        name = self.function.rpartition(".")[2]
        known = name and name != "<module>" and not (self.line and name in SAMPLE_MAKERS)
        other = f"the line at {self.place}" if self.line else f"the code in {self.place}"
        return f"`{name}` ({self.place})" if known else other

    @property
    def text(self) -> str:
        """`x = self.scaler.transform(x)` (dataset.py:41, in `Windows.__getitem__`)."""
        return self.text_beside("")

    def text_beside(self, named: str) -> str:
        """The same, for a reader who has just been told of the function `named`."""
        unnamed = self.function in ("", "<module>", named)
        owner = "" if unnamed else f", in `{self.function}`"
        if not self.code:
            known = self.function not in ("", "<module>")
            return f"`{self.function}` ({self.place})" if known else self.place
        shown = self.code if len(self.code) <= LONGEST_SHOWN else self.code[: LONGEST_SHOWN - 1] + "…"
        return f"`{shown}` ({self.place}{owner})"


def together(lines: Sequence[Hotspot]) -> Hotspot:
    """Lines of one piece of code, the heaviest first, as one: at a line that has most of their time, else at
    none."""
    share = sum(spot.share for spot in lines)
    heavy = (spot for spot in lines if spot.line and spot.share >= SINGLED_OUT * share)
    line = next(heavy, replace(lines[0], line=0, code=""))
    return replace(line, share=min(1.0, share))


def hotspot(item: Any) -> Hotspot | None:
    """A hotspot of the probe, or None if it is not one (rings cannot be trusted)."""
    if not isinstance(item, dict):
        return None
    share, line, seconds, calls = (item.get(key) for key in ("share", "line", "seconds", "calls"))
    if not isinstance(share, int | float) or not 0 < share <= SHARE_LIMIT:
        return None
    return Hotspot(
        phase=str(item.get("phase", "")),
        function=_plain(str(item.get("function", ""))),
        file=str(item.get("file", "")),
        line=line if isinstance(line, int) else 0,
        share=min(1.0, float(share)),
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        kind=str(item.get("kind") or ""),
        code=str(item.get("code") or "")[:160],
        calls=float(calls) if isinstance(calls, int | float) else None,
        inside=str(item.get("inside") or "")[:80],
        callers=callers(item.get("callers")),
        constant=str(item.get("constant") or "")[:120],
        random=item.get("random") is True,
        orders=item.get("orders") is True,
        fixed=item.get("fixed") is True,
        no_grad=item.get("no_grad") is True,
        detached=item.get("detached") is True,
        double=item.get("double") is True,
        job=str(item.get("job") or "")[:40],
        api=str(item.get("api") or "")[:80],
        blocking=item.get("blocking") is True,
        update=item.get("update") is True,
        head=item.get("head") is True,
        removable=item.get("removable") is True,
        piece=_piece(item.get("piece")),
        batchable=_piece(item.get("batchable")),
        within_turns=item.get("within_turns") is True,
        in_turn=item.get("in_turn") is True,
        repeats=_count(item.get("repeats")),
        derives=item.get("derives") is True,
        once=item.get("once") is True,
        polls=item.get("polls") is True,
        over_operations=item.get("over_operations") is True,
    )


def _count(raw: Any) -> int:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw > 0 else 0


def _piece(raw: Any) -> tuple[str, int] | None:
    if not isinstance(raw, list) or len(raw) != 2 or not isinstance(raw[1], int):
        return None
    return str(raw[0]), raw[1]


def _plain(function: str) -> str:
    """The function containing a comprehension or lambda: "Trainer.step.<dictcomp>" is `Trainer.step`."""
    if function.startswith("<"):
        return "<module>"
    return function.partition(".<")[0]


def callers(raw: Any) -> tuple[Caller, ...]:
    """Callers listed by the probe; invalid ones are left out."""
    items = [item for item in raw if isinstance(item, dict)] if isinstance(raw, list) else []
    return tuple(
        Caller(
            _plain(str(item.get("function", ""))),
            str(item.get("file", "")),
            item["line"] if isinstance(item.get("line"), int) else 0,
            str(item.get("code") or "")[:120],
        )
        for item in items[:8]
    )
