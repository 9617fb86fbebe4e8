"""The hot half of the recorder: what happens at every mark of a loop.

Written twice, with the same meaning: `native.c` for Linux, where it is built when gpumon is installed and
a C compiler is there (wheels carry it), and `plain.py` for everywhere else. `GPUMON_PURE=1` chooses the
Python one. Tests play the same loops on both and compare every record.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .plain import Batches, Core, Face, Loop, Phase, tracing
elif os.environ.get("GPUMON_PURE", "") in ("", "0"):
    try:
        from .native import Batches, Core, Face, Loop, Phase, tracing
    except ImportError:
        from .plain import Batches, Core, Face, Loop, Phase, tracing
else:
    from .plain import Batches, Core, Face, Loop, Phase, tracing

NATIVE = Core.__module__.endswith("native")

__all__ = ["NATIVE", "Batches", "Core", "Face", "Loop", "Phase", "tracing"]
