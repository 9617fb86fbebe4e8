"""How conditions are shown: a symbol, a word and a role, so that nothing depends on colour alone.

A busy GPU is good news and looks calm. What alarms is a GPU that waits while a run is on it.
"""

from __future__ import annotations

from typing import NamedTuple

from monitor.language import word
from monitor.model.gpu import Gpu
from monitor.tui.text import Span


class Symbol(NamedTuple):
    char: str
    name: str
    role: str

    @property
    def word(self) -> str:
        """In the reader's language."""
        return word(self.name)

    @property
    def span(self) -> Span:
        return Span(self.char, self.role)


SEVERITY: dict[str, Symbol] = {
    "critical": Symbol("▲", "critical", "alarm"),
    "warning": Symbol("◆", "warning", "warn"),
    "hint": Symbol("○", "hint", "info"),
    "healthy": Symbol("●", "healthy", "good"),
}
RUN: dict[str, Symbol] = {
    "running": Symbol("●", "running", "good"),
    "starved": Symbol("▲", "starved", "alarm"),
    "stalled": Symbol("▲", "stalled", "alarm"),
    "critical": Symbol("▲", "critical", "alarm"),
    "warning": Symbol("◆", "warning", "warn"),
    "ended": Symbol("○", "ended", "dim"),
    "failed": Symbol("✕", "failed", "alarm"),
    "killed": Symbol("✕", "killed", "warn"),
}
GPU: dict[str, Symbol] = {
    "lost": Symbol("✕", "lost", "alarm"),
    "hung": Symbol("✕", "hung", "alarm"),
    "error": Symbol("✕", "error", "alarm"),
    "stalled": Symbol("▲", "stalled", "alarm"),
    "starved": Symbol("▲", "starved", "alarm"),
    "throttled": Symbol("◆", "throttled", "warn"),
    "busy": Symbol("●", "busy", "good"),
    "part_busy": Symbol("◐", "part busy", "warn"),
    "in_use": Symbol("◐", "in use", "info"),
    "idle": Symbol("○", "idle", "dim"),
    "mig": Symbol("○", "mig", "dim"),
    "unknown": Symbol("○", "unknown", "dim"),
}
TREND: dict[str | None, Symbol] = {
    None: Symbol("", "", ""),
    "steady": Symbol("", "steady", "dim"),
    "falling": Symbol("↓", "falling", "warn"),
    "collapsed": Symbol("↓", "collapsed", "alarm"),
}
STOPS = ".。"
"""Left out where a sentence goes on."""
REASONS = {
    "gpu_idle": "idle",
    "applications_clocks_setting": "app clocks",
    "sw_power_cap": "power cap",
    "hw_slowdown": "hw slowdown",
    "sync_boost": "sync boost",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "hw thermal",
    "hw_power_brake_slowdown": "power brake",
    "display_clock_setting": "display clock",
}
"""Throttle reason → a short name."""


def reasons(gpu: Gpu) -> str:
    """Why the clocks are down, as far as it costs speed."""
    return ", ".join(word(REASONS.get(name, name)) for name in gpu.throttled_by)
