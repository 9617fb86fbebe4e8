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
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .busyclock import BusyClock
from .place import is_user_file, qualified, short_path
from .stacks import Frame, StackReader

ENOUGH = 120
"""Looks in one window."""
LONGEST_S = 3.0
MAX_SPOTS = 12
_PR_SET_TIMERSLACK = 29
_SWITCH_S = 0.00002
_MODULE = os.path.join("torch", "nn", "modules", "module.py")
_CHECKPOINT = os.path.join("torch", "utils", "checkpoint.py")


Seen = tuple[str, Frame, int, int, int, str, str]
"""phase, place, ns, ns on a core, ns queued, which of torch's files lies around, what was inside."""


class Spot:
    """One line of user code in one phase."""

    __slots__ = ("cpu", "inside", "module", "ns", "queued")

    def __init__(self) -> None:
        self.ns = self.cpu = self.queued = 0
        self.module = False
        self.inside: dict[str, int] = {}


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
        place, around = _user_frame(frames)
        inside = "" if frames[0] is place else frames[0].name
        self._pending.append((phase, place, ns, *busy, around, inside))
        self.looks += 1

    def _count(self, looks: list[Seen]) -> None:
        for phase, place, ns, cpu, queued, around, inside in looks:
            spot = self._spots.setdefault((phase, place), Spot())
            spot.ns += ns
            spot.cpu += cpu
            spot.queued += queued
            spot.module = spot.module or around == _MODULE
            self.checkpointing = self.checkpointing or around == _CHECKPOINT
            if inside:
                spot.inside[inside] = spot.inside.get(inside, 0) + ns

    def result(self) -> list[dict[str, Any]]:
        """The heaviest lines, each with its share of its phase and its seconds a step."""
        phases: dict[str, int] = {}
        spots = dict(self._spots)
        for (phase, _), spot in spots.items():
            phases[phase] = phases.get(phase, 0) + spot.ns
        ranked = sorted(spots.items(), key=lambda item: -item[1].ns)[:MAX_SPOTS]
        return [self._describe(key, spot, phases[key[0]]) for key, spot in ranked]

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
        return found


def _user_frame(frames: list[Frame]) -> tuple[Frame, str]:
    """The innermost frame of user code (else the leaf), and which of torch's own files lies around."""
    user: Frame | None = None
    around = ""
    for frame in frames:
        if frame.file.endswith(_CHECKPOINT):
            around = _CHECKPOINT
        elif frame.file.endswith(_MODULE) and not around:
            around = _MODULE
        if user is None and is_user_file(frame.file):
            user = frame
    return user or frames[0], around


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
