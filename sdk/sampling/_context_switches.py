"""Whether sampling disturbs the sampled thread: its context switches with and without sampling."""

from __future__ import annotations

try:
    import resource
except ImportError:  # Windows: unknown there
    resource = None  # type: ignore[assignment]

MOST_PER_SAMPLE = 2
"""Chosen: extra switches a sample may cause, one to the sampling thread and one back."""
SLOWEST = 16
"""Chosen: sampling becomes at most this many times rarer."""


class Switches:
    """Context switches of this thread. `factor`: how many times farther apart samples should be."""

    def __init__(self) -> None:
        self.factor = 1
        self._outside = self._steps_outside = self._samples = 0
        self._last = _switches(), 0

    def window_begins(self, steps: int) -> None:
        """The steps since the last window were not sampled."""
        count, at = _switches(), self._last
        self._outside += count - at[0]
        self._steps_outside += steps - at[1]
        self._last = count, steps

    def window_ends(self, steps: int, samples: int) -> None:
        """`samples`: total of all windows so far."""
        count, at = _switches(), self._last
        usual = self._outside / max(1, self._steps_outside) * (steps - at[1])
        taken, self._samples = max(0, samples - self._samples), samples
        if count - at[0] - usual > MOST_PER_SAMPLE * max(taken, 1):
            self.factor = min(SLOWEST, 2 * self.factor)
        self._last = count, steps


def _switches() -> int:
    """Context switches of the calling thread; 0 where the system does not tell."""
    if resource is None or not hasattr(resource, "RUSAGE_THREAD"):
        return 0
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_nvcsw + used.ru_nivcsw
