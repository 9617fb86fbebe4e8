"""Keep freed memory for the next step.

A training step frees its activations and asks for the same sizes again. The C library gives large blocks back
to the kernel each time, and every page of the next step is then mapped and cleared anew: up to a third of the
time of a step with large tensors. The price of keeping them: the process holds what its largest step held.
"""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""Names of two settings in malloc.h."""


def keep_freed_memory() -> bool:
    """From now on, in this process; False where the C library has no such setting (it is glibc's)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, -1))
