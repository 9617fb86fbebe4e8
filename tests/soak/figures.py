"""The criteria of the soak."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import NamedTuple

from tests.integration.daemon.process import Daemon
from tests.soak.writers import RANKS, Written

WARM_UP_SECONDS = 660.0
"""Longer than the daemon keeps most of what it remembers by design: ended runs stay visible for ten minutes,
and where the history left a ring is remembered for ten. The names of dead rings, 400 bytes each, stay for
an hour."""
FORMER_SECONDS, FORMER_SHARE = 600.0, 0.6
"""Growth used to be judged by the last 40 % of ten minutes, without such a warm-up; that figure is kept
beside the new one."""
MOST_GROWTH = 1 << 20
"""Bytes per hour, after warm-up."""
FLOOR_SECONDS = 60.0
"""Within a tick memory goes up and down by some MiB, which hides a slope of 1 MiB/h for hours; the lowest
reading of each minute is what stays."""
MOST_P99_SECONDS = 0.2


class Sample(NamedTuple):
    seconds: float
    resident: int
    cpu: float


@dataclass(frozen=True)
class Figures:
    minutes: float
    resident: int
    growth_per_hour: float
    """Of the floor."""
    growth_error: float
    """Its standard error."""
    line_growth_per_hour: float
    """Of all readings, ups and downs within a tick included."""
    former_growth_per_hour: float
    cpu_ratio: float
    missed_ticks: int
    written: int
    read: int
    lost: int
    short_runs: int
    scrapes: int
    p50: float
    p99: float
    page_events: int

    @property
    def holds(self) -> bool:
        """Everything that was promised."""
        return (
            self.growth_per_hour <= MOST_GROWTH
            and self.missed_ticks == 0
            and self.lost == 0
            and self.read == self.written
            and self.p99 < MOST_P99_SECONDS
        )


def judge(
    daemon: Daemon,
    samples: list[Sample],
    written: Written,
    scrapes: list[tuple[float, float]],
    pages: list[int],
    warm_up: float = WARM_UP_SECONDS,
) -> Figures:
    steps, short_runs = written
    warm = [sample for sample in samples if sample.seconds >= warm_up]
    former = [sample for sample in samples if sample.seconds < FORMER_SECONDS]
    times = sorted(seconds for when, seconds in scrapes if when >= warm[0].seconds)
    return Figures(
        minutes=(warm[-1].seconds - warm[0].seconds) / 60,
        resident=warm[-1].resident,
        growth_per_hour=slope(floor(warm)) * 3600,
        growth_error=slope_error(floor(warm)) * 3600,
        line_growth_per_hour=slope(warm) * 3600,
        former_growth_per_hour=median_slope(former[int(len(former) * FORMER_SHARE) :]) * 3600,
        cpu_ratio=(warm[-1].cpu - warm[0].cpu) / (warm[-1].seconds - warm[0].seconds),
        missed_ticks=int(daemon.metric("gpumon_ticks_missed_total") or 0),
        written=steps * RANKS,
        read=steps_read(daemon),
        lost=_sum(daemon, "gpumon_rank_lost_records_total"),
        short_runs=short_runs,
        scrapes=len(times),
        p50=times[len(times) // 2],
        p99=times[int(len(times) * 0.99)],
        page_events=min(pages),
    )


def slope(samples: list[Sample]) -> float:
    """Bytes per second: least-squares line."""
    seconds, resident = [one.seconds for one in samples], [float(one.resident) for one in samples]
    return statistics.linear_regression(seconds, resident).slope


def slope_error(samples: list[Sample]) -> float:
    """Standard error of that slope, from how far the samples are from their line."""
    seconds, resident = [one.seconds for one in samples], [float(one.resident) for one in samples]
    line = statistics.linear_regression(seconds, resident)
    apart = [y - line.slope * x - line.intercept for x, y in zip(seconds, resident, strict=True)]
    deviation = math.sqrt(sum(one**2 for one in apart) / (len(apart) - 2))
    return deviation / (math.sqrt(len(seconds)) * statistics.pstdev(seconds))


def floor(samples: list[Sample]) -> list[Sample]:
    """The lowest of each minute; of ten parts where it lasted less than ten minutes."""
    begin, length = samples[0].seconds, samples[-1].seconds - samples[0].seconds
    count = max(10, int(length // FLOOR_SECONDS))
    parts: dict[int, list[Sample]] = {}
    for sample in samples:
        at = int((sample.seconds - begin) / length * count)
        parts.setdefault(min(at, count - 1), []).append(sample)
    return [min(part, key=lambda one: one.resident) for part in parts.values()]


def median_slope(samples: list[Sample]) -> float:
    """Bytes per second: the median slope between pairs, which a single jump does not affect."""
    half = len(samples) // 2
    pairs = zip(samples[:half], samples[half:], strict=False)
    return statistics.median((b.resident - a.resident) / (b.seconds - a.seconds) for a, b in pairs)


def steps_read(daemon: Daemon) -> int:
    """Steps read, of all ranks of the long run."""
    return _sum(daemon, "gpumon_rank_steps_total")


def _sum(daemon: Daemon, name: str) -> int:
    lines = daemon.get("/metrics")[2].decode().splitlines()
    mine = [line for line in lines if line.startswith(f"{name}{{") and 'run="soak"' in line]
    return int(sum(float(line.rpartition(" ")[2]) for line in mine))
