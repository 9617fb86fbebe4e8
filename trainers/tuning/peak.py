"""Peak memory while something runs: from the GPU's allocator, or the process's high-water mark."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import torch


def peak_bytes(action: Callable[[], object], device: torch.device) -> int | None:
    """Highest use during `action`, of everything the process holds; None where it cannot be measured."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        action()
        return int(torch.cuda.max_memory_allocated(device))
    if not _reset():
        return None
    action()
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else None


def _reset() -> bool:
    """Lower the kernel's high-water mark to what is in use now."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True
