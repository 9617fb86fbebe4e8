"""The hot half of the recorder: what happens at every mark of a loop.

Written twice, with the same meaning: `native.c` and its parts for Linux, built when gpumon is installed and a
C compiler is there, and `plain.py` with `plainfaces.py` for everywhere else. `GPUMON_PURE=1` chooses the
Python one. Tests play the same loops on both and compare every record.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING or os.environ.get("GPUMON_PURE", "") not in ("", "0"):
    from .plain import Core, tracing
    from .plainfaces import Batches, Face, Loop, Phase
else:
    try:
        from .native import Batches, Core, Face, Loop, Phase, tracing
    except ImportError:
        from .plain import Core, tracing
        from .plainfaces import Batches, Face, Loop, Phase

NATIVE = Core.__module__.endswith("native")

__all__ = ["NATIVE", "Batches", "Core", "Face", "Loop", "Phase", "tracing"]
