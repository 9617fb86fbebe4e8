"""What is worth trying in a training that runs: settings that can be switched between two steps, of the first
two classes, and that leave no trace in what the script logs."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..knobs.knob import Place


def live_candidates(place: Place) -> Iterator[tuple[str, str]]:
    """Knob and value, what costs most where it is wrong first. A knob that has nothing to change is passed
    over when its turn comes."""
    yield "anomaly", "off"
    yield "gc.collect", "off"
    yield "loader.whole_batches", "on"
    yield from (("threads.torch", str(count)) for count in _thread_counts(place))
    yield "optimizer.fused", "on"
    yield "gc.freeze", "on"
    yield "precision.matmul_tf32", "on"
    yield "cudnn.benchmark", "on"


def _thread_counts(place: Place) -> list[int]:
    """One a core, and one alone: a small model loses more by handing out work than it wins."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    now = place.torch.get_num_threads()
    return [count for count in dict.fromkeys((cores, 1)) if count != now]
