"""The controls of a replay: its position, its speed, and the frames it shows."""

from __future__ import annotations

from monitor.catalog.recording import Recording
from monitor.model import units
from monitor.model.clock import Moment
from monitor.tui.frame import Frame, Hub, Update

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
TRAIL = 240
"""Readings put into the graphs when the replay jumps."""


class Replay:
    """Plays a recording in one-second steps of our time, each covering `speed` seconds of its own."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.speed = 8.0
        self.playing = True
        self.at = recording.start
        self._hub = Hub([(recording.record.run.hostname or "recorded", "replay")], self._clock)
        self.seek(recording.start)

    def _clock(self) -> Moment:
        return Moment(self.at, self.at - self.recording.start)

    @property
    def share(self) -> float:
        """How far it has got, 0–1."""
        length = self.recording.end - self.recording.start
        return (self.at - self.recording.start) / length if length > 0 else 1.0

    def tick(self) -> None:
        """A second has passed; playback stops at the end."""
        if not self.playing:
            return
        until = min(self.recording.end, self.at + self.speed)
        step = max(self.recording.step, self.speed / 4)
        moments = [self.at + step * n for n in range(1, 5) if self.at + step * n < until]
        for moment in [*moments, until]:
            self.at = moment
            self._feed(moment)
        if self.at >= self.recording.end:
            self.playing = False

    def seek(self, to: float) -> None:
        """Jump, and fill the graphs with what led up to that point."""
        self.at = max(self.recording.start, min(self.recording.end, to))
        self._hub.reset(0)
        step = self.recording.step
        count = min(TRAIL, int((self.at - self.recording.start) / step))
        for back in range(count, -1, -1):
            self._feed(self.at - back * step)

    def faster(self, by: int) -> None:
        self.speed = SPEEDS[max(0, min(len(SPEEDS) - 1, SPEEDS.index(self.speed) + by))]

    def _feed(self, moment: float) -> None:
        snapshot = self.recording.at(moment)
        self._hub.take([Update(0, snapshot, None, Moment(moment, moment - self.recording.start))])

    def frame(self) -> Frame:
        sign = "▶" if self.playing else "‖"
        self._hub.note = f"{sign} replay ×{self.speed:g} {units.date(self.at).split()[0]}"
        return self._hub.frame()
