"""A plausible card: clocks, power and temperature follow its load.

Not a model of any product. First-order lags with the time constants of real cards: power follows in half a
second, the die in tens of seconds, the memory a little slower. Throttling emerges by itself: a card that gets
too warm lowers its clock, and with it its power, until it stays within its limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GIB = 1 << 30
MHZ = 1e6

MEMORY_TOTAL = 80 * GIB
MEMORY_RESERVED = 600 << 20
MEMORY_IDLE = 4 << 20
IDLE_WATTS = 65.0
LIMIT_WATTS = 400.0
SM_MAX = 1980 * MHZ
SM_BUSY = 1755 * MHZ
SM_IDLE = 345 * MHZ
MEM_MAX = 2619 * MHZ
MEM_IDLE = 1593 * MHZ
AMBIENT = 27.0
KELVIN_PER_WATT = 0.115
SLOWDOWN = 87.0
SHUTDOWN = 92.0
MEMORY_LIMIT = 95.0
POWER_LAG = 0.5
HEAT_LAG = 18.0
MEMORY_HEAT_LAG = 25.0
USE_LAG = 0.35
SUBSTEP = 0.25
"""Round figures for a data-centre card with 80 GB; lags in seconds, chosen to look like recorded ones."""


@dataclass(slots=True)
class Card:
    """The changing state of one simulated card."""

    use: float = 0.0
    power: float = IDLE_WATTS
    temperature: float = AMBIENT + IDLE_WATTS * KELVIN_PER_WATT
    memory_temperature: float = AMBIENT + IDLE_WATTS * KELVIN_PER_WATT + 4.0
    clock: float = SM_IDLE
    energy: float = 0.0
    thermal: bool = False
    capped: bool = False

    def step(self, seconds: float, use: float, limit: float, heat: float, clock_factor: float) -> None:
        """Advance by `seconds` (at most `SUBSTEP`) under the given use and conditions."""
        self.use += (use - self.use) * _towards(seconds, USE_LAG)
        self.clock = self._clock(limit, clock_factor)
        self.power += (self._wanted_watts(limit) - self.power) * _towards(seconds, POWER_LAG)
        self.energy += self.power * seconds
        warm = AMBIENT + heat + self.power * KELVIN_PER_WATT
        self.temperature += (warm - self.temperature) * _towards(seconds, HEAT_LAG)
        self.memory_temperature += (warm + 6 - self.memory_temperature) * _towards(seconds, MEMORY_HEAT_LAG)

    def _clock(self, limit: float, factor: float) -> float:
        """The clock after power cap, heat and any reduction by the scenario."""
        if self.use < 0.02:
            self.thermal = self.capped = False
            return SM_IDLE
        self.thermal = self.temperature > SLOWDOWN - (1.5 if self.thermal else 0.0)
        demand = IDLE_WATTS + (LIMIT_WATTS - IDLE_WATTS) * self.use
        self.capped = demand > limit + 1.0
        share = math.sqrt(max(0.1, (limit - IDLE_WATTS * 0.8) / demand)) if self.capped else 1.0
        share *= max(0.25, 1.0 - 0.12 * (self.temperature - SLOWDOWN + 1.5)) if self.thermal else 1.0
        return max(SM_IDLE, SM_BUSY * min(1.0, share) * factor)

    def _wanted_watts(self, limit: float) -> float:
        speed = self.clock / SM_BUSY
        dynamic = (LIMIT_WATTS - IDLE_WATTS) * self.use * speed * speed
        return min(limit, IDLE_WATTS + max(0.0, dynamic))

    @property
    def fan(self) -> float:
        """Fans start at 30 % and run at full speed at the slowdown limit."""
        return min(1.0, max(0.3, (self.temperature - 30.0) / (SLOWDOWN - 30.0)))

    @property
    def pstate(self) -> int:
        return 0 if self.use >= 0.02 else 8

    @property
    def memory_clock(self) -> float:
        return MEM_MAX if self.use >= 0.02 else MEM_IDLE


def _towards(seconds: float, lag: float) -> float:
    """How far a first-order lag gets in `seconds`; exact for any step, so ticks may vary."""
    return 1.0 - math.exp(-seconds / lag)


def substeps(seconds: float) -> tuple[int, float]:
    """How many steps of what width make up `seconds`."""
    count = max(1, math.ceil(seconds / SUBSTEP - 1e-9))
    return count, seconds / count


def ripple(index: int, seconds: float) -> float:
    """A small, deterministic fluctuation (±1): readings of a real card are never flat."""
    return 0.6 * math.sin(1.7 * seconds + index) + 0.4 * math.sin(4.1 * seconds + 2.3 * index)
