"""Which line of the user's code the time goes to, from a short-lived sampling thread.

A thread that looks at another one's stack neither changes what the code computes nor what dynamo sees.
The stack is read in one piece (`stacks`), never walked while its thread goes on.
It is truthful only if it gets its turn soon, so the interpreter's switch interval is short while it
looks. Each look also asks how long the watched thread worked: that tells working from waiting.
"""

from __future__ import annotations

import contextlib
import importlib
import linecache
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from .busyclock import BusyClock
from .place import body, forget_source, is_user_file, per_epoch, qualified, short_path
from .returned import Returned
from .sourcecode import fixed_line, without_gradients
from .stacks import Frame, StackReader

ENOUGH = 120
"""Looks in one window."""
LONGEST_S = 3.0
MAX_SPOTS = 16
MAX_CALLERS = 4
_PR_SET_TIMERSLACK = 29
_SWITCH_S = 0.00002
_MODULE = os.path.join("torch", "nn", "modules", "module.py")
_CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")
_MAKERS = ("__getitem__", "__getitems__", "__iter__", "__next__")
_RANDOM = re.compile(r"random\.|\brng\b|\brand(n|int|_like|n_like)?\(|uniform|normal\(|bernoulli|choices?\(")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*")
_KEEPS = re.compile(r"\.(append|extend)\(|\+=\s*\w*loss|\w*loss\w*\s*=\s*\w+ \+ \w*loss")
_PLAIN = re.compile(r"\.item\(|\.detach\(|float\(|\.tolist\(|\.numpy\(|perf_counter|time\(|^#")


class Seen(NamedTuple):
    """One look."""

    phase: str
    place: Frame
    ns: int
    cpu: int
    """Nanoseconds on a core."""
    queued: int
    """Nanoseconds waiting for one."""
    around: str
    """Which of torch's own files lies around."""
    inside: str
    """The library function it was in."""
    callers: tuple[Frame, ...]
    """The user's frames around the place, innermost first."""


class Spot:
    """One line of user code in one phase."""

    __slots__ = ("callers", "cpu", "inside", "module", "ns", "queued")

    def __init__(self) -> None:
        self.ns = self.cpu = self.queued = 0
        self.module = False
        self.inside: dict[str, int] = {}
        self.callers: dict[tuple[Frame, ...], int] = {}


class Hotspots:
    """Looks at one thread for a while and adds up. `phase()` names what it does, None: look away."""

    def __init__(
        self,
        thread: int,
        phase: Callable[[], str | None],
        done: Callable[[list[dict[str, Any]]], None] | None = None,
    ) -> None:
        self._thread = thread
        self._phase = phase
        self._done = done
        self._spots: dict[tuple[str, Frame], Spot] = {}
        self._steps = 0
        self._pending: list[Seen] = []
        self._running = False
        self._looker: threading.Thread | None = None
        self.calls: dict[tuple[str, int], int] = {}
        """(file, line) → calls made from there in a step, when somebody counted them."""
        self.returned: Returned | None = None
        """Who returns the same in every step, when somebody compared."""
        self.looks = 0
        self.checkpointing = False

    def start(self, every_s: float) -> None:
        if self._running or self.looks >= ENOUGH * 4:
            return
        self._running = True
        self._looker = threading.Thread(target=self._look, args=(every_s,), name="gpumon-look", daemon=True)
        self._looker.start()

    @property
    def running(self) -> bool:
        return self._running

    def step(self) -> None:
        """A step (a batch) has ended: what was seen in it counts. After the last one nothing does."""
        looks, self._pending = self._pending, []
        if looks:
            self._count(looks)
            self._steps += 1

    def stop(self) -> None:
        """End the window and wait for the thread; it sleeps at most one interval."""
        self._running = False
        looker = self._looker
        if looker is not None and looker is not threading.current_thread():
            looker.join(0.5)

    def forget(self) -> None:
        """Begin anew: the run may have changed since."""
        self._spots.clear()
        self._pending = []
        self.looks = self._steps = 0

    def _look(self, every_s: float) -> None:
        switch = sys.getswitchinterval()
        sys.setswitchinterval(min(switch, _SWITCH_S))
        try:
            self._watch(every_s)
        except Exception:  # noqa: BLE001 — at interpreter exit anything may be gone; a look is no matter
            return
        finally:
            sys.setswitchinterval(switch)
            self._running = False
        if self._done is not None:
            self._done(self.result())

    def _watch(self, every_s: float) -> None:
        _exact_timers()
        clock, stack = BusyClock(self._thread), StackReader(self._thread)
        first = last = time.monotonic_ns()
        busy = clock.read()
        enough = self.looks + ENOUGH
        while self._running and self.looks < enough and last - first < LONGEST_S * 1e9:
            time.sleep(every_s)
            frames, phase = stack.read(), self._phase()
            now, busy_now = time.monotonic_ns(), clock.read()
            if frames and phase is not None:
                self._add(phase, frames, now - last, (busy_now[0] - busy[0], busy_now[1] - busy[1]))
            last, busy = now, busy_now
        stack.close()
        clock.close()

    def _add(self, phase: str, frames: list[Frame], ns: int, busy: tuple[int, int]) -> None:
        """Note one look; it counts when the step it was in has ended."""
        places, around = _user_frames(frames)
        place, callers = places[0], tuple(places[1 : MAX_CALLERS + 1])
        inside = "" if frames[0] is place else frames[0].name
        self._pending.append(Seen(phase, place, ns, *busy, around, inside, callers))
        self.looks += 1

    def _count(self, looks: list[Seen]) -> None:
        for look in looks:
            spot = self._spots.setdefault((look.phase, look.place), Spot())
            spot.ns += look.ns
            spot.cpu += look.cpu
            spot.queued += look.queued
            spot.module = spot.module or look.around == _MODULE
            self.checkpointing = self.checkpointing or look.around == _CHECKPOINT
            spot.callers[look.callers] = spot.callers.get(look.callers, 0) + look.ns
            if look.inside:
                spot.inside[look.inside] = spot.inside.get(look.inside, 0) + look.ns

    def result(self) -> list[dict[str, Any]]:
        """The heaviest lines, each with its share of its phase and its seconds a step."""
        phases: dict[str, int] = {}
        spots = dict(self._spots)
        for (phase, _), spot in spots.items():
            phases[phase] = phases.get(phase, 0) + spot.ns
        ranked = sorted(spots.items(), key=lambda item: -item[1].ns)[:MAX_SPOTS]
        try:
            return [self._describe(key, spot, phases[key[0]]) for key, spot in ranked]
        finally:
            forget_source()

    def kept(self) -> list[dict[str, Any]]:
        """Lines of the loop that keep something of every step, where it may still carry its graph."""
        places = {place for phase, place in dict(self._spots) if phase == "backward"}
        lines = {(place.file, at, text.strip()) for place in places for at, text in body(place)}
        found = [one for one in sorted(lines) if _KEEPS.search(one[2]) and not _PLAIN.search(one[2])]
        return [{"file": short_path(file), "line": at, "code": text[:120]} for file, at, text in found[:4]]

    def _describe(self, key: tuple[str, Frame], spot: Spot, whole: int) -> dict[str, Any]:
        phase, place = key
        text = linecache.getline(place.file, place.line).strip()[:160]
        found: dict[str, Any] = {
            "phase": phase,
            "function": qualified(place),
            "file": short_path(place.file),
            "line": place.line,
            "code": text,
            "share": round(spot.ns / max(1, whole), 4),
            "seconds": spot.ns / 1e9 / max(1, self._steps),
            "kind": _kind(spot, text),
        }
        if spot.inside:
            found["inside"] = max(spot.inside, key=lambda name: spot.inside[name])
        calls = self.calls.get((place.file, place.line))
        if calls is not None:
            found["calls"] = calls
        callers = max(spot.callers, key=lambda chain: spot.callers[chain], default=())
        if callers:
            found["callers"] = [_caller(frame) for frame in callers]
        constant = self._constant(place, *callers)
        if constant is not None:
            found["constant"] = constant
        if _drawn(place, *callers):
            found["random"] = True
        if fixed_line(place):
            found["fixed"] = True
        if any(without_gradients(frame) for frame in (place, *callers)):
            found["no_grad"] = True
        return found

    def _constant(self, *frames: Frame) -> str | None:
        """The outermost of these functions that returns the same in every step."""
        same = self.returned
        found = [one for one in frames if same is not None and same.constant(one.file, one.line, one.name)]
        return qualified(found[-1]) if found else None

    def per_epoch(self) -> list[dict[str, Any]]:
        """Lines that run once an epoch, beside the loop over the steps."""
        ways = [
            (place, *max(spot.callers, key=lambda chain: spot.callers[chain], default=()))
            for (phase, place), spot in dict(self._spots).items()
            if phase == "backward"
        ]
        lines = sorted({line for way in ways for line in per_epoch(*way)})
        shown = [one for one in lines if not one[2].startswith(("print(", "#"))]
        return [{"file": short_path(file), "line": at, "code": text[:120]} for file, at, text in shown[:4]]


def _drawn(*frames: Frame) -> bool:
    """Whether what is made here is drawn at random: the function draws, or a line on the way from the one
    torch asks for the sample does, or uses what was drawn above it."""
    asked = next((at for at, frame in enumerate(frames) if frame.name in _MAKERS), None)
    if asked is None:
        return False
    if asked and any(_RANDOM.search(text) for _, text in body(frames[0])):
        return True
    return any(_uses_drawn(frame) for frame in frames[: asked + 1])


def _uses_drawn(frame: Frame) -> bool:
    above = [text for at, text in body(frame) if at < frame.line and _RANDOM.search(text)]
    names = [name for text in above for name in _ASSIGNED.findall(text.partition("=")[0])]
    text = linecache.getline(frame.file, frame.line)
    return bool(_RANDOM.search(text)) or any(re.search(rf"\b{name}\b", text) for name in names)


def _caller(frame: Frame) -> dict[str, Any]:
    return {
        "function": qualified(frame),
        "file": short_path(frame.file),
        "line": frame.line,
        "code": linecache.getline(frame.file, frame.line).strip()[:120],
    }


def _user_frames(frames: list[Frame]) -> tuple[list[Frame], str]:
    """The frames of user code, innermost first (else the leaf); which of torch's own files lies around."""
    users: list[Frame] = []
    around = ""
    for frame in frames:
        if frame.file.endswith(_CHECKPOINT):
            around = _CHECKPOINT
        elif frame.file.endswith(_MODULE) and not around:
            around = _MODULE
        if is_user_file(frame.file):
            users.append(frame)
    return users or frames[:1], around


def _kind(spot: Spot, text: str) -> str:
    """cpu, sleep, io (waits for something outside), or module (a torch module's own work)."""
    if spot.cpu < 0.3 * (spot.ns - spot.queued):
        return "sleep" if "sleep" in text else "io"
    return "module" if spot.module else "cpu"


def _exact_timers() -> None:
    """Linux lets a thread's waits end 50 µs late. Waiting for the interpreter lock that long, this thread
    would only ever see the watched one where it lets go of the lock by itself (inside torch), and never
    in the Python loop in front of it."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        ctypes = importlib.import_module("ctypes")
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
