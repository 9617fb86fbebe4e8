"""A close look at a few steps: hot lines, and what the loop does that costs (prints, `.item()`, copies).

Windows are short and early, so that a run of forty steps has its diagnosis; then rare. The steps in a
window are flagged and kept out of the steady figures.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import ring
from .hotspots import Hotspots
from .phases import OTHER
from .recorder import Recorder
from .stepprofile import StepProfile

FIRST_STEP = 3
QUICK_NS, QUICK_FIRST_STEP = 50_000_000, 8
"""Quick steps can wait a little longer: a dozen of them must leave some that nobody looked at."""
WINDOW_STEPS = 8
PROFILE_STEPS = 4
"""Steps at a window's end in which calls are counted; not the same ones, counting makes calls dear."""
WANTED = 360
"""Looks until the picture is good; after that a fresh one every `AGAIN_NS`."""
AGAIN_NS = 600 * 10**9
SLOWER, SLOWER_LOOKS = 1.4, 4
"""A run whose steps have got this much longer has another picture now; looked at so many times at most."""
_SHORTEST_S, _LONGEST_S = 0.0004, 0.004


class Look:
    """Opens and closes the windows; `found` gets the config and the scalars of what was seen."""

    def __init__(self, recorder: Recorder, found: Callable[[dict[str, Any], dict[str, float]], None]) -> None:
        self._recorder = recorder
        self._found = found
        self._hotspots = Hotspots(recorder.thread, self._phase)
        self._profile = StepProfile()
        self._open = False
        self._profiled = False
        self._steps = self._sampled = 0
        self._again = 0
        self._usual = 0
        self._slower = self._fresh = 0
        recorder.on_look = self.look
        recorder.next_look = FIRST_STEP

    def _phase(self) -> str:
        """From the sampling thread: the ring may be growing right now."""
        try:
            phase = self._recorder.phase
        except ValueError:
            phase = OTHER
        return "other" if phase == OTHER else self._recorder.names.name(phase)

    def look(self, steps: int, now: int, duration: int) -> None:
        """Called behind the commit of step `steps`, from the step asked for on."""
        if self._open:
            self._goes_on(steps, now)
        elif steps < QUICK_FIRST_STEP and duration < QUICK_NS:
            self._recorder.next_look = steps + 1
        elif now >= self._again or self._has_slowed(duration):
            self._begin(duration)
        else:
            self._recorder.next_look = steps + (1 if self._slower else 64)

    def _has_slowed(self, duration: int) -> bool:
        """Steps are lastingly longer than when the picture was taken: it no longer says where time goes."""
        wanted = self._fresh < SLOWER_LOOKS and duration > SLOWER * self._usual
        self._slower = self._slower + 1 if wanted else 0
        if self._slower < 3:
            return False
        self._slower, self._fresh = 0, self._fresh + 1
        return True

    def _begin(self, duration: int) -> None:
        if self._again:
            self._hotspots.forget()
            self._profiled = False
        self._usual = duration
        self._open = True
        self._steps = 0
        self._recorder.flag_next(ring.F_SAMPLED)
        self._hotspots.start(min(_LONGEST_S, max(_SHORTEST_S, duration / 1e9 / 20)))

    def _goes_on(self, steps: int, now: int) -> None:
        """First the sampling thread looks, then calls are counted, then it is over. The step behind it
        pays for the adding up, so it is flagged as well."""
        self._recorder.flag_next(ring.F_SAMPLED)
        self._hotspots.step()
        self._profile.step()
        self._steps += 1
        self._sampled += 1
        if self._hotspots.running and self._steps < WINDOW_STEPS:
            return
        self._hotspots.stop()
        if not self._profiled:
            self._profiled = True
            self._steps = WINDOW_STEPS
            if self._profile.start(self._recorder.thread):
                return
        if not self._profile.on or self._steps >= WINDOW_STEPS + PROFILE_STEPS:
            self.close()
            self._plan(steps, now)

    def _plan(self, steps: int, now: int) -> None:
        """The next window: soon while the picture is thin, then after ten minutes."""
        if self._hotspots.looks < WANTED:
            self._recorder.next_look = 2 * steps + WINDOW_STEPS
        else:
            self._again = now + AGAIN_NS
            self._recorder.next_look = steps + 64

    def close(self) -> None:
        """End an open window and hand over what it saw."""
        if not self._open:
            return
        self._open = False
        self._profile.stop()
        self._hotspots.stop()
        if self._profile.steps:  # one that was cut short says less than the one before it
            self._hotspots.calls = self._profile.calls()
            self._hotspots.returned = self._profile.returned
        config: dict[str, Any] = {"sampled_steps": self._sampled}
        if kept := self._hotspots.kept():
            config["keeps"] = kept
        if lines := self._hotspots.per_epoch():
            config["per_epoch"] = lines
        config["hotspots"] = self._hotspots.result()
        if self._hotspots.checkpointing:
            config["checkpointing_seen"] = True
        self._found(config, self._profile.scalars())
