"""Rungs: which optimizations are on. Each is a named switch, so each can be measured on its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainers.config import TrainConfig
from trainers.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """One thing that makes a recipe faster at equal results."""

    name: str
    seed: str
    """The seed document's id, e.g. "S0.1"; "beyond" when it is ours."""
    rung: Literal["document", "best"]
    text: str
    gpu_only: bool = False
    """Without a GPU it changes nothing that could be measured."""
    measured: bool = False
    """Whether it pays depends on the machine: the best rung measures it (`trainers.tuning.products`)."""


AMP = Optimization(name="amp", seed="S0.3 S1.1", rung="document", text="mixed precision", gpu_only=True)
COMPILE = Optimization(name="compile", seed="S0.6 S1.3 S2.6 S4.4", rung="document", text="torch.compile")
PINNED = Optimization(
    name="pinned", seed="S0.4 S1.2 S2.4", rung="document", text="pinned memory, non-blocking", gpu_only=True
)
TF32 = Optimization(
    name="tf32", seed="S1.5 S4.2", rung="document", text="TF32 and cudnn.benchmark", gpu_only=True
)
WORKERS = Optimization(
    name="workers", seed="S0.4 S1.2 S4.3", rung="document", text="loader processes with prefetch"
)
THROTTLE = Optimization(
    name="throttle", seed="S2.2 S2.5", rung="document", text="logs, norms, progress now and then"
)
SET_TO_NONE = Optimization(
    name="set_to_none", seed="S4.2", rung="document", text="zero_grad(set_to_none=True)"
)
CACHE = Optimization(name="cache_data", seed="S0.2 S1.2", rung="document", text="data set kept in memory")
FUSED = Optimization(name="fused", seed="beyond", rung="best", text="fused optimizer step", measured=True)
RESIDENT = Optimization(
    name="resident", seed="beyond", rung="best", text="resident tensors, batches gathered"
)
CHANNELS_LAST = Optimization(
    name="channels_last", seed="beyond", rung="best", text="channels-last convolutions", measured=True
)
KEEP_MEMORY = Optimization(
    name="keep_memory", seed="beyond", rung="best", text="freed memory kept for the next step (on a CPU)"
)
COMMON = (WORKERS, THROTTLE, SET_TO_NONE, PINNED, TF32, AMP, COMPILE, FUSED, KEEP_MEMORY)


FLAGS = {"cache_data": "cache_data", "use_amp": "amp", "use_torch_compile": "compile", "pin_memory": "pinned"}


def resolve(config: TrainConfig, known: Iterable[Optimization], *, cuda: bool) -> frozenset[str]:
    """The rung's set, changed by the flags that were given, changed by --ablate."""
    table = {item.name: item for item in known}
    on = {name for name, item in table.items() if _in_rung(item, config.rung)}
    if not cuda:
        # compile pays on a GPU; on a CPU it costs a minute and may lose: only when asked for.
        on -= {"compile"} | {name for name, item in table.items() if item.gpu_only}
    for field, name in FLAGS.items():
        value = getattr(config, field)
        if value is not None and name in table:
            on = on | {name} if value else on - {name}
    for word in filter(None, (part.strip() for part in config.ablate.split(","))):
        name = word.lstrip("+-")
        if name not in table:
            raise TrainerError(f"--ablate: no optimization {name!r}", hint=f"there are: {', '.join(table)}")
        on = on | {name} if word.startswith("+") else on - {name}
    return frozenset(on)


def _in_rung(item: Optimization, rung: str) -> bool:
    return rung == "best" or (rung == "document" and item.rung == "document")
