"""The recorder's hot path: what happens at every mark in a loop.

There are two equivalent implementations: `native.c` and its parts for Linux, built at installation if there
is a C compiler, and `plain.py` with `plain_marks.py` everywhere else. `GPUMON_PURE=1` selects the Python one.
Tests run the same loops on both and compare every record.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING or os.environ.get("GPUMON_PURE", "") not in ("", "0"):
    from .plain import Core, tracing
    from .plain_marks import Batches, Loop, Marks, Phase
else:
    try:
        from .native import Batches, Core, Loop, Marks, Phase, tracing
    except ImportError:
        from .plain import Core, tracing
        from .plain_marks import Batches, Loop, Marks, Phase

NATIVE = Core.__module__.endswith("native")

__all__ = ["NATIVE", "Batches", "Core", "Marks", "Loop", "Phase", "tracing"]
