"""Memory: an optimizer that keeps its use below 80 %, tiers by hardware, suggestions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch

from trainers.datasets.cache import available_memory

HIGH_WATER = 0.8
"""The document's bound: memory use should stay below 80 %."""
CHECK_EVERY = 10
"""Steps between two looks at the memory."""


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA's own exception, the CPU allocator's RuntimeError, or Python's."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)


@dataclass(kw_only=True)
class MemoryOptimizer:
    """Adapts the batch size: above the high-water mark or out of memory it is halved, after
    `grow_after` good checks with room for twice as much it is doubled again.

    `unit` keeps a structure whole: a P×K batch shrinks in steps of K, a batch of ranks in equal parts.
    """

    batch_size: int
    unit: int = 1
    grow_after: int = 20
    halvings: int = 0
    good_checks: int = 0
    wanted: int = 0

    def __post_init__(self) -> None:
        self.wanted = self.wanted or self.batch_size

    def shrink(self) -> bool:
        """Halve; False when it cannot get smaller."""
        smaller = self.batch_size // 2 // self.unit * self.unit
        if smaller < self.unit:
            return False
        self.batch_size, self.good_checks = smaller, 0
        self.halvings += 1
        # A size that failed is tried again ever more rarely.
        self.grow_after *= 2 if self.halvings > 1 else 1
        return True

    def on_check(self, used: float) -> bool:
        """Look at the share of memory in use; True when the batch size has changed."""
        if used > HIGH_WATER:
            return self.shrink()
        self.good_checks += 1
        room = 2 * used <= HIGH_WATER
        if self.batch_size >= self.wanted or self.good_checks < self.grow_after or not room:
            return False
        self.batch_size, self.good_checks = min(self.wanted, self.batch_size * 2), 0
        return True


def device_memory_bytes(device: torch.device) -> int:
    """Memory of the device: the GPU's, or what is free on the host."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return available_memory()


def used_ratio(device: torch.device) -> float:
    """Share of the memory in use: the GPU's, or this process's part of what it could have on the host."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return float(1 - free / total)
    own = resident_bytes()
    return own / max(1, own + available_memory())


def resident_bytes() -> int:
    """What this process holds in memory now; 0 where the kernel does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def release(device: torch.device) -> None:
    """Give cached blocks back before trying again."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


@dataclass(frozen=True)
class Tier:
    """Model and batch size for an amount of memory (the document's three tables)."""

    name: str
    batch_size: int
    hidden_channels: int
    encoder_layers: int
    decoder_layers: int
    transformer_layers: int
    attention_heads: int
    use_gradient_checkpoint: bool


TIERS = (
    Tier("low", 8, 32, 1, 1, 1, 1, True),
    Tier("medium", 16, 64, 2, 2, 1, 2, True),
    Tier("high", 32, 128, 3, 3, 2, 4, False),
)


def pick_tier(name: str, memory_bytes: int) -> Tier:
    """A tier by name, or by memory: < 8 GB low, 8–16 GB medium, above high."""
    by_name = {tier.name: tier for tier in TIERS}
    if name in by_name:
        return by_name[name]
    gigabytes = memory_bytes / 1e9
    return TIERS[0] if gigabytes < 8 else TIERS[1] if gigabytes <= 16 else TIERS[2]


def rule_of_thumb_batch(memory_bytes: int) -> int:
    """The document's rule: GB ÷ 2."""
    return max(1, int(memory_bytes / 1e9 / 2))


def measured_batch(bytes_at: dict[int, int], memory_bytes: int) -> int:
    """Largest batch below the high-water mark, from peaks measured at two or more batch sizes.

    Memory grows as m0 + m1·B; the line goes through the smallest and the largest size measured.
    """
    small, large = min(bytes_at), max(bytes_at)
    slope = max(1.0, (bytes_at[large] - bytes_at[small]) / max(1, large - small))
    base = bytes_at[small] - slope * small
    return max(1, int((memory_bytes * HIGH_WATER - base) / slope))
