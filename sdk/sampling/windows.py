"""When a few steps are sampled: hot lines, and what the loop does that costs (prints, `.item()`, copies).

Windows are short and early, so that a run of forty steps has its diagnosis; then rare. They have a budget:
the next one waits until the run is long enough for what it will cost. What samples say is looked up when the
run is old enough for that, or at its end. The steps in a window are flagged and in no steady figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .. import ring
from ..loop.recorder import Recorder
from ..redact import redact_lines
from ._budget import Budget
from ._context_switches import Switches
from .hotspots import ENOUGH, Hotspots
from .step_profile import StepProfile

FIRST_STEP = 3
"""After the warm-up steps every run has (`recorder.WARMUP_STEPS`)."""
QUICK_NS, QUICK_FIRST_STEP = 50_000_000, 8
"""A choice. Quick steps can wait a little longer: a run of a dozen must keep some that are not sampled."""
WINDOW_STEPS = 8
"""A choice: enough steps for lines that do not run in each of them, few enough for a run of forty."""
PROFILE_STEPS = 4
"""Steps at a window's end in which calls are counted; not the sampled ones, because profiling slows calls."""
WANTED = 360
"""Samples until the profile is good (three full windows); after that a fresh one every `AGAIN_NS`."""
AGAIN_NS = 600 * 10**9
"""A choice: ten minutes between profiles keep the cost of sampling out of a long run."""
SLOWER, SLOWER_PROFILES = 1.4, 4
"""A choice: a run whose steps have become this much longer is sampled again, up to this many times."""
_SHORTEST_S, _LONGEST_S, _SAMPLES_PER_STEP = 0.0004, 0.004, 20
"""A choice: seconds between samples. Twenty in a step tell its lines apart; more often, sampling would be
what is seen, and less often, a window would have too few."""
_MORE = 4
"""A choice: samples are looked up again when there are so many times more: that costs far more than to take
them."""
_SAMPLE_NS, _EVALUATION_NS = 40_000, 25_000_000
"""What a sample, and looking up what a window's samples say, is taken to cost before the first was
measured."""
_CHECK_EVERY, _SECOND_NS = 64, 1_000_000_000
"""A choice: steps between checks whether a new window is due, or as many as fit into a second."""


class SamplingWindows:
    """Opens and closes the windows; `found` gets what a window found, as config and scalars."""

    def __init__(self, recorder: Recorder, found: Callable[[dict[str, Any], dict[str, float]], None]) -> None:
        self._recorder = recorder
        self._found = found
        self._hotspots = Hotspots(recorder.thread, recorder, recorder.names.name)
        self._profile = StepProfile()
        self._budget = Budget(time.monotonic_ns())
        self._switches = Switches()
        self._sampling_costs, self._evaluation_ns = ENOUGH * _SAMPLE_NS, _EVALUATION_NS
        """What the next window, and looking up what it found, will probably cost."""
        self._sampling_ns = self._profile_ns = 0
        """What is accounted for."""
        self._open = self._sampling = self._profiled = self._due = self._untold = False
        self._told = 0
        """Samples there were when it was last looked up what they say."""
        self._steps = self._sampled = 0
        self._again = self._next = 0
        """When, and at which step, the next window may begin."""
        self._usual = 0
        self._slower = self._fresh = 0
        recorder.next_sample = FIRST_STEP

    @property
    def open(self) -> bool:
        return self._open

    def step(self, steps: int, now: int, duration: int) -> None:
        """Step `steps` has been committed, and `next_sample` asked for it."""
        if self._open:
            self._continue(steps, now)
        elif steps < QUICK_FIRST_STEP and duration < QUICK_NS:
            self._recorder.next_sample = steps + 1
        elif self._due and self._budget.has_earned(now, self._evaluation_ns):
            self._recorder.flag_next(ring.F_SAMPLED)
            self._tell()
            self._wait(steps, duration)
        elif self._budget.allows(now, self._sampling_costs) and self._wants_window(steps, now, duration):
            self._begin(steps, duration)
        else:
            self._wait(steps, duration)

    def _wants_window(self, steps: int, now: int, duration: int) -> bool:
        return steps >= self._next and (now >= self._again or self._has_slowed(duration))

    def _wait(self, steps: int, duration: int) -> None:
        """Look again after some steps, or at the next window's; at once while steps seem to be slower."""
        later = 1 if self._slower else max(1, min(_CHECK_EVERY, _SECOND_NS // max(1, duration)))
        ahead = self._next - steps
        self._recorder.next_sample = steps + (min(later, ahead) if ahead > 0 else later)

    def _has_slowed(self, duration: int) -> bool:
        """Several steps in a row are longer than at the last profile: it no longer says where time goes."""
        wanted = self._fresh < SLOWER_PROFILES and duration > SLOWER * self._usual
        self._slower = self._slower + 1 if wanted else 0
        if self._slower < 3:
            return False
        self._slower, self._fresh = 0, self._fresh + 1
        return True

    def _begin(self, steps: int, duration: int) -> None:
        began = time.thread_time_ns()
        if self._again:
            self._hotspots.forget()
            self._profiled, self._told = False, 0
        self._usual = duration
        self._open = self._sampling = True
        self._steps = 0
        self._recorder.flag_next(ring.F_SAMPLED)
        self._switches.window_begins(steps)
        self._hotspots.watch(self._recorder.thread)
        every = min(_LONGEST_S, max(_SHORTEST_S, duration / 1e9 / _SAMPLES_PER_STEP))
        self._hotspots.start(every * self._switches.factor)
        self._recorder.next_sample = steps + 1
        self._budget.spend(time.thread_time_ns() - began)

    def _continue(self, steps: int, now: int) -> None:
        """First the sampling thread runs, then calls are counted, then the window closes. The step after it
        has our own work in it, so it is flagged as well."""
        self._recorder.next_sample = steps + 1
        self._recorder.flag_next(ring.F_SAMPLED)
        self._hotspots.step()
        self._profile.step()
        self._steps += 1
        self._sampled += 1
        if self._hotspots.running and self._steps < WINDOW_STEPS:
            return
        if self._sampling:
            self._sampling = False
            self._hotspots.stop()
            self._switches.window_ends(steps, self._hotspots.samples)
        if not self._profiled:
            self._profiled = True
            self._steps = WINDOW_STEPS
            if self._profile.start(self._recorder.thread, self._budget.left_ns(now)):
                return
        if not self._profile.on or self._steps >= WINDOW_STEPS + PROFILE_STEPS:
            self._close_window()
            self._plan(steps, now)

    def _plan(self, steps: int, now: int) -> None:
        """The next window: soon while there are few samples, then after `AGAIN_NS`."""
        if self._hotspots.samples < WANTED:
            self._next = 2 * steps + WINDOW_STEPS
        else:
            self._again = now + AGAIN_NS

    def close(self) -> None:
        """The run ends: close an open window, and say what was found if that was not affordable before."""
        if self._open:
            self._close_window()
        if self._untold:
            began = time.monotonic_ns()
            self._tell()
            self._recorder.spent_ns += time.monotonic_ns() - began  # no mark has timed it

    def _close_window(self) -> None:
        self._open = self._sampling = False
        self._profile.stop()
        self._hotspots.stop()
        samples = self._hotspots.samples
        self._due = samples >= min(WANTED, _MORE * self._told)
        self._untold = True
        self._account()

    def _tell(self) -> None:
        """Look up what the samples say and hand it over."""
        began, cpu = time.monotonic_ns(), time.thread_time_ns()
        self._due = self._untold = False
        self._told = self._hotspots.samples
        self._found(self._evaluate(), self._profile.scalars())
        self._evaluation_ns = time.thread_time_ns() - cpu
        self._budget.spend(self._evaluation_ns)
        # The mark around this counts the time it took, and on a busy machine others had most of it.
        self._recorder.spent_ns -= time.monotonic_ns() - began - self._evaluation_ns

    def _evaluate(self) -> dict[str, Any]:
        lines = self._hotspots.evaluate()
        if self._profile.steps:  # one that was cut short says less than the one before it
            lines.calls = self._profile.calls()
            lines.return_values = self._profile.return_values
            lines.seen = self._profile.seen
        config: dict[str, Any] = {"sampled_steps": self._sampled, **redact_lines(lines.evaluate())}
        if lines.checkpointing or self._profile.scalars().get("checkpoint.blocks_per_step"):
            config["checkpointing_seen"] = True
        if lines.framework:
            config["framework"] = lines.framework
        return config

    def _account(self) -> None:
        """What the window has cost beside the marks, which time themselves."""
        sampling, profile = self._hotspots.spent_ns, self._profile.spent_ns
        self._sampling_costs = sampling - self._sampling_ns
        beside = self._sampling_costs + profile - self._profile_ns
        self._sampling_ns, self._profile_ns = sampling, profile
        self._recorder.spent_ns += beside
        self._budget.spend(beside)
