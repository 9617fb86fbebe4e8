"""How a run came to a bad end, or hung: in which phase of which step, and how full memory was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from monitor.model import units
from monitor.model.finding import Finding
from monitor.model.run import Rank, Run

HUNG = "trend.hung"
"""The rule about runs that no longer make steps."""
ENDINGS = (HUNG, "trend.ended_abnormally")
"""Rules whose findings say the same as a post-mortem."""


class PostMortem(Struct, frozen=True):
    """Only what is known: unknown figures are None."""

    how: Literal["killed", "failed", "hung"]
    step: int
    """The one it was in, counted from 1."""
    phase: str | None = None
    rank: int | None = None
    """Only set when there are several."""
    error: str | None = None
    silent_seconds: float | None = None
    """How long a hung run had made no step when it was last seen or ended."""
    device_memory_ratio: float | None = None
    memory_bytes: int | None = None
    """What the process held on the host when last checked."""

    def text(self) -> str:
        """One sentence: "Killed in backward of step 8,412, at 97 % of the GPU's memory"."""
        where = f"in {self.phase} of step" if self.phase else "in step"
        if self.phase == "between":
            where = "after the work of step"
        rank = "" if self.rank is None else f" (rank {self.rank})"
        return f"{self._how()} {where} {units.whole(self.step)}{rank}{self._memory()}"

    def _how(self) -> str:
        if self.how == "hung":
            return f"Hung for {units.duration(self.silent_seconds)}" if self.silent_seconds else "Hung"
        if self.how == "killed":
            return "Killed"
        return f"Ended by {self.error}" if self.error else "Ended by an exception"

    def _memory(self) -> str:
        if self.device_memory_ratio is not None:
            return f", at {units.percent(self.device_memory_ratio)} of the GPU's memory"
        return f", holding {units.size(self.memory_bytes)} of memory" if self.memory_bytes else ""


def post_mortem(run: Run, findings: Iterable[Finding]) -> PostMortem | None:
    """None for a run that is still going or ended normally."""
    hung = next((one for one in findings if one.id == HUNG and one.run == run.id), None)
    rank = _whose(run, hung)
    if rank is None:
        return None
    if run.state in ("killed", "failed"):
        how: Literal["killed", "failed", "hung"] = "killed" if run.state == "killed" else "failed"
    elif run.state == "stalled" or hung is not None:
        how = "hung"
    else:
        return None
    return PostMortem(
        how=how,
        step=rank.steps + 1,
        phase=_phase(rank, hung),
        rank=rank.rank if len(run.ranks) > 1 else None,
        error=run.error,
        silent_seconds=_silent(run, rank) if how == "hung" else None,
        device_memory_ratio=_device_memory(run, rank),
        memory_bytes=_host_memory(run, rank),
    )


def _whose(run: Run, hung: Finding | None) -> Rank | None:
    """The rank that stopped first: the others are only waiting for it."""
    if hung is not None and hung.rank is not None:
        return next((rank for rank in run.ranks if rank.rank == hung.rank), None)
    bad = [rank for rank in run.ranks if rank.state == run.state] or list(run.ranks)
    return min(bad, key=lambda rank: (rank.steps, rank.rank), default=None)


def _phase(rank: Rank, hung: Finding | None) -> str | None:
    """The phase it was in; the rule says "other" when that is unknown."""
    said = hung.evidence.get("live_phase") if hung is not None else None
    return rank.live_phase or (said if isinstance(said, str) and said != "other" else None)


def _silent(run: Run, rank: Rank) -> float | None:
    end = run.started + run.elapsed_seconds
    return None if rank.last_step_time is None else max(0.0, end - rank.last_step_time)


def _device_memory(run: Run, rank: Rank) -> float | None:
    """Memory reserved by the process, as a share of the card's."""
    total = run.config.get("gpu_memory_bytes")
    used = rank.scalars.get("cuda.reserved_bytes")
    if used is None:
        used = next(
            (one.device_memory_bytes for one in reversed(run.timeline) if one.device_memory_bytes), None
        )
    return used / total if used is not None and isinstance(total, int | float) and total > 0 else None


def _host_memory(run: Run, rank: Rank) -> int | None:
    seen = next((one.rss_bytes for one in reversed(run.timeline) if one.rss_bytes), None)
    told = rank.scalars.get("proc.rss_bytes")
    return seen if seen is not None else None if told is None else int(told)
