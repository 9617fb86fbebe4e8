"""Sums over all records of a run so far: steady steps, sampled ones, warm-up."""

from __future__ import annotations

from itertools import compress

from .. import ring
from ..core.phases import DATA, OTHER
from ..statistics import StepSums, own_times

STEADY, SAMPLED, WARMUP = range(3)
_SUMMED = (
    ring.W_BEGIN, ring.W_END, ring.W_FLAGS, ring.W_SAMPLES, ring.W_TOKENS, ring.W_OVERHEAD, ring.W_GC,
)  # fmt: skip
_ENOUGH = 3
"""Chosen: with this many steady steps, only they are shown; shorter runs show what they have."""


class Group(StepSums):
    """Sums over the records of one kind."""

    __slots__ = ("gc_ns",)

    def __init__(self) -> None:
        super().__init__()
        self.gc_ns = 0

    def add(self, columns: dict[int, list[int]], used: tuple[int, ...]) -> None:
        """Add whole records, given as columns: one pass in C per column."""
        raw = [end - begin for begin, end in zip(columns[ring.W_BEGIN], columns[ring.W_END], strict=True)]
        phases = {phase: columns[ring.W_PHASES + phase] for phase in used}
        samples, tokens = sum(columns[ring.W_SAMPLES]), sum(columns[ring.W_TOKENS])
        sums = {phase: sum(column) for phase, column in phases.items()}
        net = self.add_steps(raw, columns[ring.W_OVERHEAD], samples, tokens, sums)
        self.steady.add(own_times(net, phases))
        self.count_micro_batches(columns[ring.W_FLAGS])
        self.gc_ns += sum(columns[ring.W_GC])


class Totals:
    """Sums records in place, many at once: five times cheaper than one by one."""

    __slots__ = ("_groups", "epoch_wait_ns", "epochs", "used")

    def __init__(self) -> None:
        self._groups = (Group(), Group(), Group())
        self.used: tuple[int, ...] = ()
        self.epochs = self.epoch_wait_ns = 0

    def use(self, phase: int) -> None:
        """Remember that this phase occurs."""
        if phase != OTHER and phase not in self.used:
            self.used = tuple(sorted((*self.used, phase)))

    def add(self, words: memoryview) -> None:
        """Add whole records."""
        if not words:
            return
        columns = self._columns(words)
        flags = columns[ring.W_FLAGS]
        self._count_epochs(words, flags)
        kinds = list(map(_kind, flags)) if any(flags) else [STEADY]
        for kind in set(kinds):
            if len(set(kinds)) == 1:
                self._groups[kind].add(columns, self.used)
            else:
                mask = [one == kind for one in kinds]
                part = {word: list(compress(column, mask)) for word, column in columns.items()}
                self._groups[kind].add(part, self.used)

    def _columns(self, words: memoryview) -> dict[int, list[int]]:
        wanted = [*_SUMMED, *(ring.W_PHASES + phase for phase in self.used)]
        return {word: words[word :: ring.SLOT_WORDS].tolist() for word in wanted}

    def _count_epochs(self, words: memoryview, flags: list[int]) -> None:
        for number, flag in enumerate(flags):
            if flag & ring.F_EPOCH_START:
                self.epochs += 1
                self.epoch_wait_ns += words[number * ring.SLOT_WORDS + ring.W_PHASES]

    @property
    def samples(self) -> int:
        return sum(group.samples for group in self._groups)

    @property
    def tokens(self) -> int:
        return sum(group.tokens for group in self._groups)

    def group(self, kind: int) -> Group:
        return self._groups[kind]

    def typical(self) -> Group:
        """The steady steps; in a very short run, whatever there is."""
        return max(self._groups, key=lambda group: (min(group.steps, _ENOUGH), group is self._groups[STEADY]))

    def waits(self, workers: int) -> dict[str, float]:
        """How long the loop waits for its loader's workers, and for the first batch of an epoch."""
        steady, found = self.group(STEADY), {}
        if steady.steps and workers:
            found["loader.wait_s"] = steady.phase_ns[DATA] / steady.steps / 1e9
        if self.epochs:
            found["loader.first_wait_s"] = self.epoch_wait_ns / self.epochs / 1e9
        return found


def _kind(flags: int) -> int:
    return WARMUP if flags & ring.F_WARMUP else SAMPLED if flags & ring.F_SAMPLED else STEADY
