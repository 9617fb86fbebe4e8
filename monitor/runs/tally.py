"""Sums over a number of steps: a second, a rolling bucket, a timeline window, a whole run."""

from __future__ import annotations

from monitor.model.run import Times
from monitor.model.steps import Columns
from sdk.statistics import StepSums


class Tally(StepSums):
    """Steps excluding warm-up and sampled ones. `steady` excludes stalls, the sums include them."""

    __slots__ = (
        "busy_ns",
        "measured",
        "stall_ns",
        "starved_ns",
    )

    def __init__(self) -> None:
        super().__init__()
        self.stall_ns = self.measured = self.busy_ns = self.starved_ns = 0

    @classmethod
    def of(cls, *parts: Tally) -> Tally:
        """The sum of all parts."""
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    def merge(self, other: Tally) -> None:
        self.merge_sums(other)
        self.stall_ns += other.stall_ns
        self.measured += other.measured
        self.busy_ns += other.busy_ns
        self.starved_ns += other.starved_ns

    def times(self) -> Times:
        """The distribution of the steady steps."""
        return Times(count=self.steady.count, **self.steady.seconds())

    def add(self, columns: Columns) -> list[int]:
        """Add the sums of `columns`; returns each step's own ns, without our overhead."""
        self.count_micro_batches(columns.flags)
        samples, tokens = sum(columns.samples), sum(columns.tokens)
        return self.add_steps(columns.raw, columns.overhead, samples, tokens, columns.sums())

    def add_device(self, device: tuple[int, int, int, int]) -> None:
        self.measured += device[0]
        self.busy_ns += device[1]
        self.starved_ns += device[2]

    def starved_ratio(self) -> float | None:
        device = self.busy_ns + self.starved_ns
        return self.starved_ns / device if device else None
