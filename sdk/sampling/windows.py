"""When to sample a few steps: for hot lines, and for expensive calls in the loop (prints, `.item()`, copies).

Windows are short and early, so that a run of forty steps gets its diagnosis; then rare. They have a budget:
the next one waits until the run is long enough to afford it. Samples are evaluated when the run can afford
that, or at its end. The steps in a window are flagged and excluded from the steady figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .. import ring
from ..loop.recorder import Recorder
from ..redact import redact_lines
from ._context_switches import Switches
from .budget import Budget
from .hotspots import ENOUGH, Hotspots
from .step_profile import StepProfile

FIRST_STEP = 3
"""After the warm-up steps, which every run has (`recorder.WARMUP_STEPS`)."""
QUICK_NS, QUICK_FIRST_STEP = 50_000_000, 8
"""Chosen: with quick steps, sampling starts a little later: a run of a dozen must keep some unsampled."""
WINDOW_STEPS = 8
"""Chosen: enough steps to see lines that do not run in every step, few enough for a run of forty."""
PROFILE_STEPS = 4
"""Steps at a window's end in which calls are counted; they are not sampled, because profiling slows calls."""
WANTED = 360
"""Samples for a good profile (three full windows); after that, a fresh one every `AGAIN_NS`."""
AGAIN_NS = 600 * 10**9
"""Chosen: ten minutes between profiles keep the cost of sampling negligible in a long run."""
SLOWER, SLOWER_PROFILES = 1.4, 4
"""Chosen: a run whose steps have become this much longer is sampled again, up to this many times."""
_SHORTEST_S, _LONGEST_S, _SAMPLES_PER_STEP = 0.0004, 0.004, 20
"""Chosen: seconds between samples. Twenty per step tell its lines apart; with more, we would see the sampling
itself, and with fewer, a window would have too few."""
_MORE = 4
"""Chosen: samples are evaluated again once there are this many times more: evaluating costs far more than
sampling."""
_SAMPLE_NS, _EVALUATION_NS = 40_000, 25_000_000
"""Assumed cost of a sample, and of evaluating a window's samples, before the first has been measured."""
_CHECK_EVERY, _SECOND_NS = 64, 1_000_000_000
"""Chosen: steps between checks for whether a new window is due, or fewer, if fewer fit into a second."""


class SamplingWindows:
    """Opens and closes the windows; `found` receives a window's findings as config and scalars."""

    def __init__(self, recorder: Recorder, found: Callable[[dict[str, Any], dict[str, float]], None]) -> None:
        self._recorder = recorder
        self._found = found
        self._hotspots = Hotspots(recorder.thread, recorder, recorder.names.name)
        self._profile = StepProfile()
        self._budget = Budget(time.monotonic_ns())
        self._switches = Switches()
        self._sampling_costs, self._evaluation_ns = ENOUGH * _SAMPLE_NS, _EVALUATION_NS
        """What the next window, and evaluating it, will probably cost."""
        self._sampling_ns = self._profile_ns = 0
        """Costs already accounted for."""
        self._open = self._sampling = self._profiled = self._due = self._untold = False
        self._told = 0
        """Number of samples at the last evaluation."""
        self._steps = self._sampled = 0
        self._again = self._next = 0
        """The time and the step from which the next window may begin."""
        self._usual = 0
        self._slower = self._fresh = 0
        recorder.next_sample = FIRST_STEP

    @property
    def open(self) -> bool:
        return self._open

    def step(self, steps: int, now: int, duration: int) -> None:
        """Step `steps` has been committed, and `next_sample` asked to be told."""
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
        """Check again after some steps or at the next window's step; at once while steps seem slower."""
        later = 1 if self._slower else max(1, min(_CHECK_EVERY, _SECOND_NS // max(1, duration)))
        ahead = self._next - steps
        self._recorder.next_sample = steps + (min(later, ahead) if ahead > 0 else later)

    def _has_slowed(self, duration: int) -> bool:
        """Whether several steps in a row took longer than at the last profile, so it is out of date."""
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
            self._recorder.relabelled = []
            self._profiled, self._told = False, 0
        self._usual = duration
        self._open = self._sampling = self._recorder.sampled = True
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
        contains our own work, so it is flagged as well."""
        self._recorder.next_sample = steps + 1
        self._recorder.flag_next(ring.F_SAMPLED)
        self._hotspots.step()
        self._profile.step()
        self._steps += 1
        self._sampled += 1
        if self._hotspots.running and self._steps < WINDOW_STEPS:
            return
        if self._sampling:
            self._sampling = self._recorder.sampled = False
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
        """The run ends: close an open window, and evaluate what was not affordable before."""
        if self._open:
            self._close_window()
        if self._untold:
            began = time.monotonic_ns()
            self._tell()
            self._recorder.spent_ns += time.monotonic_ns() - began  # no mark timed it

    def _close_window(self) -> None:
        self._open = self._sampling = self._recorder.sampled = False
        self._profile.stop()
        self._hotspots.stop()
        samples = self._hotspots.samples
        self._due = samples >= min(WANTED, _MORE * self._told)
        self._untold = True
        self._account()

    def _tell(self) -> None:
        """Evaluate the samples and hand over the findings."""
        began, cpu = time.monotonic_ns(), time.thread_time_ns()
        self._due = self._untold = False
        self._told = self._hotspots.samples
        self._found(self._evaluate(), self._profile.scalars())
        self._evaluation_ns = time.thread_time_ns() - cpu
        self._budget.spend(self._evaluation_ns)
        # The surrounding mark counts wall time, and on a busy machine others had most of it.
        self._recorder.spent_ns -= time.monotonic_ns() - began - self._evaluation_ns

    def _evaluate(self) -> dict[str, Any]:
        relabelled, self._recorder.relabelled = self._recorder.relabelled, []
        lines = self._hotspots.evaluate(relabelled)
        if self._profile.steps or not lines.calls:  # one that was cut short tells less than the previous one
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
        """Account for the window's cost outside the marks, which time themselves."""
        sampling, profile = self._hotspots.spent_ns, self._profile.spent_ns
        self._sampling_costs = sampling - self._sampling_ns
        beside = self._sampling_costs + profile - self._profile_ns
        self._sampling_ns, self._profile_ns = sampling, profile
        self._recorder.spent_ns += beside
        self._budget.spend(beside)
