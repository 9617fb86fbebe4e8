"""Every knob there is, in the order they are applied."""

from __future__ import annotations

from ._ceilings import FreeCheckpoints, FreeData, FreeEvaluation, FreeLogging, FreePasses
from ._loader import (
    BatchSize,
    NonBlocking,
    NumWorkers,
    PersistentWorkers,
    PinMemory,
    PrefetchFactor,
    StartMethod,
)
from ._model import Autocast, ChannelsLast, Compiled
from ._optimizer import Foreach, Fused, SetToNone
from ._precision import Anomaly, CudnnBenchmark, MatmulPrecision, Tf32
from ._process import Affinity, Allocator, Collect, EmptyCache, Freeze, Threads, Threshold
from ._side_jobs import LogEvery
from ._whole_batches import WholeBatches
from .knob import IDENTICAL, ROUNDING, Knob

KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        NumWorkers(), PersistentWorkers(), PrefetchFactor(), PinMemory(), StartMethod(), BatchSize(),
        WholeBatches(), NonBlocking(), Fused(), Foreach(), SetToNone(), Threads(), Affinity(), Collect(),
        Freeze(), Threshold(), Allocator(), EmptyCache(), Anomaly(), MatmulPrecision(), Tf32(),
        CudnnBenchmark(), ChannelsLast(), Autocast(), Compiled(), LogEvery(),
    )
}  # fmt: skip
"""Number of workers before what only workers have, and the memory format before the compiler."""

CEILINGS: dict[str, Knob] = {
    knob.name: knob for knob in (FreeData(), FreePasses(), FreeEvaluation(), FreeCheckpoints(), FreeLogging())
}
"""Parts of a loop that can be had for nothing, to see what the best remedy for each could bring."""
ALL = KNOBS | CEILINGS


def can_switch(name: str) -> bool:
    """Whether a training that runs may have it on and off."""
    knob = KNOBS[name]
    return type(knob).live is not Knob.live and knob.effect in (IDENTICAL, ROUNDING)
