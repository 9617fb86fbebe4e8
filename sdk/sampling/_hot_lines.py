"""What a thread's samples add up to: its hot lines, the work of its loop, and what their source reveals."""

from __future__ import annotations

import contextlib
import gc
import linecache
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..structure.files import short_path
from ..structure.places import Path, Place, Seen
from ._return_values import ReturnValues

MAX_SPOTS = 16
MAX_CALLERS = 4
_MAX_LINES = 4
_CODE, _SHORT_CODE = 160, 120
"""Chosen: hot lines, their callers, other lines, and characters of each to put into the meta, which has
62 KiB for everything."""
MAX_PATHS = 4000
"""Chosen: different stacks kept; a loop has dozens."""
_BUSY_SHARE = 0.3
"""Chosen: a line whose thread ran for less than this share of its time was waiting."""
MODULE = os.path.join("torch", "nn", "modules", "module.py")
CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")


Key = tuple[str, tuple[str, int, str]]
"""A phase, and a line as (file, line, function); line 0 is some line of the function."""


class Sample(NamedTuple):
    """One sample of the stack."""

    phase: str
    frames: tuple[Place, ...]
    """The user's frames, innermost first."""
    ns: int
    """Nanoseconds, excluding time the thread queued for a core."""
    cpu: int
    """Nanoseconds on a core."""
    innermost: str = ""
    """The function the thread was in, if not the user's."""
    entered: str = ""
    """The library function called from the user's innermost frame."""
    checkpointing: bool = False
    framework: str = ""
    loose: bool = False
    """The time may have been spent on another line of the same function."""


class Spot:
    """One line of user code in one phase, and the stacks it was seen in."""

    def __init__(self) -> None:
        self.paths: list[Path] = []

    @property
    def ns(self) -> int:
        return sum(path.ns for path in self.paths)

    @property
    def main(self) -> Path:
        """The stack it was in most of the time."""
        return max(self.paths, key=lambda path: path.ns)

    def most(self, name: str) -> str:
        """The library function that takes most of its time: the one `entered` from here, or the
        `innermost`."""
        times: dict[str, int] = {}
        for path in self.paths:
            for function, ns in getattr(path, name).items():
                times[function] = times.get(function, 0) + ns
        return max(times, key=lambda function: times[function], default="")


class HotLines:
    """Samples summed by phase and stack."""

    def __init__(self) -> None:
        self._paths: dict[tuple[str, tuple[Place, ...], bool], Path] = {}
        self._steps = 0
        self.calls: dict[tuple[str, int], int] = {}
        """(file, line) → calls made from there per step, as far as counted."""
        self.return_values = ReturnValues()
        """Which functions return the same value in every step, as far as compared."""
        self.seen = Seen()
        self.checkpointing = False
        self.framework = ""

    def forget(self) -> None:
        """Start over: the run may have changed since."""
        self._paths.clear()
        self._steps = 0

    def count(self, samples: list[Sample]) -> None:
        """Add the samples of one step."""
        self._steps += 1
        for sample in samples:
            path = self._path(sample)
            path.ns += sample.ns
            path.cpu += sample.cpu
            path.steps.add(self._steps)
            self.checkpointing = self.checkpointing or sample.checkpointing
            self.framework = self.framework or sample.framework
            if sample.entered:
                path.entered[sample.entered] = path.entered.get(sample.entered, 0) + sample.ns
            if sample.innermost:
                path.innermost[sample.innermost] = path.innermost.get(sample.innermost, 0) + sample.ns

    def _path(self, sample: Sample) -> Path:
        key = (sample.phase, sample.frames, sample.loose)
        if key not in self._paths and len(self._paths) >= MAX_PATHS:
            key = (sample.phase, sample.frames[:1], sample.loose)
        return self._paths.setdefault(key, Path(*key))

    def result(self) -> list[dict[str, Any]]:
        """Only the heaviest lines, for a thread that does not train: each with its share of its phase and
        its seconds per step."""
        found: list[dict[str, Any]] = self._safely(self._lines)["hotspots"]
        return found

    def evaluate(self) -> dict[str, Any]:
        """Everything for the meta: hot lines, pieces of work, what is kept, what is done once per epoch."""
        return self._safely(self._everything)

    def _safely(self, look: Callable[[list[Path]], dict[str, Any]]) -> dict[str, Any]:
        from ..structure import source

        paths = list(self._paths.values())
        with _no_collections():
            try:
                return look(paths)
            except Exception:  # noqa: BLE001 — the user's source: code we fail to understand must not end a training
                return {"hotspots": [self._place(key, spot, _phases(paths)) for key, spot in _spots(paths)]}
            finally:
                source.forget()

    def _lines(self, paths: list[Path]) -> dict[str, Any]:
        from ..structure.work import Work

        return {"hotspots": self._described(Work(self.seen, self._same), paths)}

    def _everything(self, paths: list[Path]) -> dict[str, Any]:
        from ..structure.work import MOST_PIECES, Work

        work = Work(self.seen, self._same)
        work.learn(paths)
        phases = _phases(paths)
        pieces = [one for piece in work.pieces(paths) for one in work.describe(piece, self._steps, phases)]
        found: dict[str, Any] = {
            "work": sorted(pieces, key=lambda one: -one["seconds"])[:MOST_PIECES],
            "sites": work.sites(paths),
            "hotspots": self._described(work, paths),
        }
        for name, places in _beside(work, [path for path in paths if path.phase == "backward"]):
            found[name] = [_line(*one, _CODE) for one in dict.fromkeys(places)][:_MAX_LINES]
        return {name: value for name, value in found.items() if value or name == "hotspots"}

    def _described(self, work: Any, paths: list[Path]) -> list[dict[str, Any]]:
        return [self._describe(work, key, spot, _phases(paths)) for key, spot in _spots(paths)]

    def _same(self, place: Place) -> bool:
        return self.return_values.constant(place.file, place.line, place.name)

    def _detached(self, place: Place) -> bool:
        return self.return_values.detached(place.file, place.line, place.name)

    def _calls(self, work: Any, file: str, line: int) -> int:
        """Calls per step from this line; from a loop of two lines, whose samples may single out its head,
        those of both."""
        inner = work.lines.repeated(file, line)
        return self.calls.get((file, line), 0) + (self.calls.get((file, inner), 0) if inner else 0)

    def _place(self, key: Key, spot: Spot, phases: dict[str, int]) -> dict[str, Any]:
        """What is known about a line without its source."""
        phase, place = key
        return {
            "phase": phase,
            "function": place[2],
            **_line(*place[:2], _CODE),
            "share": round(spot.ns / max(1, phases[phase]), 4),
            "seconds": spot.ns / 1e9 / max(1, self._steps),
            "kind": _kind(spot, ""),
        }

    def _describe(self, work: Any, key: Key, spot: Spot, phases: dict[str, int]) -> dict[str, Any]:
        from ..structure import apis
        from ..structure.source import qualified

        phase, place = key
        lines, frames = work.lines, spot.main.frames
        api = spot.most("entered")
        api = api if apis.job(api) else lines.library_call(*place[:2])
        found = self._place(key, spot, phases)
        found["kind"] = _kind(spot, apis.job(api))
        same = work.constant(spot.main)[-1:]
        same = same or [one for one in frames if work.settled(one)][:1]
        more = {
            "function": qualified(*frames[0][:3]),
            "inside": spot.most("innermost"),
            "calls": self._calls(work, *place[:2]),
            "callers": [_caller(one) for one in frames[1 : MAX_CALLERS + 1]],
            "api": api,
            "job": apis.job(api),
            "blocking": apis.job(api) in apis.BLOCKING,
            "constant": qualified(*same[0][:3]) if same else "",
            "random": work.draws.drawn([one[:3] for one in frames], phase)
            or (apis.draws(api) and not work.draws.orders(*place[:2])),
            "orders": work.draws.orders(*place[:2]),
            "piece": work.piece_at(spot.main),
            "update": work.is_update(frames[0]),
            "head": lines.is_head(*place[:2]),
            "removable": bool(apis.job(api)) and lines.removable(*place[:2]),
            "fixed": lines.fixed(*place[:2]),
            "derives": lines.derives(*place[:2]),
            "repeats": _repeats(*place[:2]) if phase == "backward" else 0,
            "batchable": _batchable(work.flow, spot.main),
            "within_turns": _within_turns(work.flow, spot.main),
            "in_turn": _in_turn(work.flow, spot.main),
            "once": _once(work.flow, spot.main),
            "over_operations": _over_operations(spot.main),
            "polls": apis.job(api) == "sleep" and _polls(work.flow, spot.main),
            "no_grad": any(lines.without_gradients(*one[:2]) for one in frames),
            "double": self.return_values.double(*frames[0][:3]),
            "detached": any(map(self._detached, spot.main.own[:-1])) or lines.in_numpy(*place[:2]),
        }
        return found | {name: value for name, value in more.items() if value}


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Syntax trees are many short-lived objects. If they counted, a full collection of the training's objects
    would come early, which takes several times as long as the work here."""
    was_on = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_on:
            gc.enable()


def _phases(paths: list[Path]) -> dict[str, int]:
    """Nanoseconds sampled in each phase."""
    found: dict[str, int] = {}
    for path in paths:
        found[path.phase] = found.get(path.phase, 0) + path.ns
    return found


def _spots(paths: list[Path]) -> list[tuple[Key, Spot]]:
    """The heaviest lines with their stacks."""
    spots: dict[Key, Spot] = {}
    for path in paths:
        file, line, name = path.frames[0][:3]
        spots.setdefault((path.phase, (file, 0 if path.loose else line, name)), Spot()).paths.append(path)
    return sorted(spots.items(), key=lambda item: -item[1].ns)[:MAX_SPOTS]


def _beside(work: Any, backward: list[Path]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Lines that keep something from every step, and those that run once per epoch outside the steps."""
    from ..structure.epochs import beside_the_steps, kept
    from ..structure.source import read

    places = sorted({path.frames[0][:2] for path in backward})
    sources = [(source, line) for file, line in places if (source := read(file))]
    keeps = [one for source, line in sources for one in kept(work.flow, source, line)]
    epochs = [one for path in backward for one in beside_the_steps(work.flow.reader, _plain(path))]
    return [("keeps", keeps), ("per_epoch", epochs)]


def _plain(path: Path) -> list[tuple[str, int]]:
    return [place[:2] for place in path.frames]


def _batchable(flow: Any, path: Path) -> tuple[str, int] | None:
    """The loop around a line whose rounds could be done at once; see `structure.rounds`."""
    from ..structure.rounds import batchable

    found = batchable(flow, path.sure)
    return (short_path(found[0]), found[1]) if found else None


def _repeats(file: str, line: int) -> int:
    """Backward passes through one graph that stand together there; see `structure.repeats`."""
    from ..structure.repeats import repeated_passes

    return repeated_passes(file, line)


def _within_turns(flow: Any, path: Path) -> bool:
    """Whether that loop is in another whose rounds need one another."""
    from ..structure.rounds import within_turns

    return within_turns(flow, path.sure)


def _in_turn(flow: Any, path: Path) -> bool:
    """Whether a round of the loop around a line begins with what the one before has ended with."""
    from ..structure.rounds import in_turn

    return in_turn(flow, path.sure)


def _once(flow: Any, path: Path) -> bool:
    """Whether no loop of the user's lies between the line and the loop over the steps."""
    from ..structure.rounds import once

    return once(flow, path.sure)


def _over_operations(path: Path) -> bool:
    """Whether the rounds of the loop around a line call no module."""
    from ..structure.rounds import over_operations

    return over_operations(path.sure)


def _polls(flow: Any, path: Path) -> bool:
    """Whether it sleeps until something has happened elsewhere."""
    from ..structure.rounds import polls

    return polls(flow, path.sure)


def _caller(place: Place) -> dict[str, Any]:
    from ..structure.source import qualified

    return {"function": qualified(*place[:3]), **_line(*place[:2], _SHORT_CODE)}


def _line(file: str, at: int, letters: int) -> dict[str, Any]:
    text = linecache.getline(file, at).strip()[:letters]
    return {"file": short_path(file), "line": at, "code": text}


def _kind(spot: Spot, job: str) -> str:
    """cpu, sleep, io (waits for something outside), or module (a torch module's own work)."""
    cpu = sum(path.cpu for path in spot.paths)
    if cpu < _BUSY_SHARE * spot.ns:
        return "sleep" if job == "sleep" else "io"
    modules = any(place.module for path in spot.paths for place in path.frames)
    return "module" if modules else "cpu"
