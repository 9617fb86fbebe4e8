"""The options all recipes share. A recipe adds its own fields in a subclass."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal, Self

from trainers.errors import TrainerError


@dataclass(kw_only=True)
class TrainConfig:
    """What every recipe understands; validated when built."""

    LEAST: ClassVar[dict[str, float]] = {
        **dict.fromkeys(("num_workers", "patience", "checkpoint_every", "seed", "weight_decay"), 0),
        "validation_fraction": 0,
    }
    """Smallest values of the options whose least is not 1; a subclass adds its own."""
    POSITIVE: ClassVar[tuple[str, ...]] = ("lr", "synthetic_size", "clip_norm")
    """Options that are any finite number above 0."""

    data_dir: str | None = None
    """Where the data is: a folder or a glob such as "data_simulation_*". Without it: --synthetic."""
    synthetic: bool = False
    """Generate data of the document's kind instead of reading files."""
    synthetic_size: float = 1.0
    """Size of the generated data as a factor of the document's."""
    out: str = "out"
    """Folder for checkpoints, metrics and the best model (a sub-folder per recipe)."""

    epochs: int = 100
    """Epochs to train."""
    max_steps: int | None = None
    """Stop after this many optimizer steps, whatever the epoch."""
    batch_size: int = 512
    """Samples in a batch, over all ranks together."""
    lr: float = 1e-3
    """Learning rate."""
    weight_decay: float = 1e-2
    """AdamW weight decay."""
    seed: int = 42
    """Seed of weights, data order and splits: same seed, same losses."""
    validation_fraction: float = 0.2
    """Share of the data held out."""

    rung: Literal["naive", "document", "best"] = "best"
    """naive: the code the document found slow; document: its list of remedies; best: ours on top."""
    ablate: str = ""
    """Optimizations to switch off, comma separated; +name switches one on: --ablate cache_data,+amp."""

    products: str = "auto"
    """Machine-dependent optimizations: auto measures them on this machine, all, none, or names."""
    device: str = "auto"
    """cpu, cuda, cuda:1 …; auto takes a GPU if there is one."""
    threads: int | None = None
    """Torch CPU threads; unset: torch decides."""
    num_workers: int | None = None
    """Loader processes. Unset: naive 0, else the document's number but at most one a core."""
    prefetch_factor: int | None = None
    """Batches a worker keeps ready. Unset: max(2, num_workers)."""
    pin_memory: bool | None = None
    """Pinned host memory and non-blocking copies. Unset: on with a GPU, off in the naive rung."""
    cache_data: bool | None = None
    """Keep the whole data set in memory; when it does not fit, say so and go on without."""
    use_amp: bool | None = None
    """Mixed precision: autocast, with a gradient scaler for float16. Unset: on with a GPU."""
    amp_dtype: Literal["auto", "float16", "bfloat16"] = "auto"
    """auto: bfloat16 where the GPU has it, else float16."""
    use_torch_compile: bool | None = field(
        default=None, metadata={"aliases": ("compile_model", "use_compile")}
    )
    """torch.compile with a checked graph count. Unset: on with a GPU, except in the naive rung."""
    compile_mode: Literal["default", "reduce-overhead", "max-autotune"] | None = None
    """Mode for torch.compile. Unset: the document's."""

    parallel: Literal["ddp", "fsdp"] = "ddp"
    """Under torchrun: ddp keeps the whole model on every rank, fsdp cuts it into shards (FSDP2)."""

    gradient_accumulation_steps: int = field(default=1, metadata={"aliases": ("accumulation_steps",)})
    """Batches whose gradients make one optimizer step; equals one batch that many times as large."""
    clip_norm: float | None = None
    """Clip the gradient norm at this value."""
    adaptive_clip: bool = False
    """Clip at a multiple of the running norm instead; needs the norm each step."""
    log_every: int | None = None
    """Steps between reads of the loss (the loop's only device sync). Unset: naive 1, else 100."""
    norm_every: int | None = None
    """Steps between reads of the gradient norm. Unset: naive 1, else 200."""
    progress_every: int | None = None
    """Steps between updates of the progress line. Unset: naive 1, else 10."""

    validation_interval: int = 1
    """Epochs between validations."""
    patience: int = 0
    """Stop after this many validations without improvement; 0: never."""
    checkpoint_every: int = 0
    """Steps between checkpoints; 0: at the end of each epoch."""
    resume: Literal["auto", "never"] = "never"
    """auto: go on from the last checkpoint in --out, bit by bit as if never stopped."""
    use_memory_optimizer: bool = False
    """Keep memory below 80 %: halve the batch before it runs out (and when it does), grow back later."""

    monitor: bool = True
    """Record every step for gpumon (sdk.TrainingMonitor)."""
    run_name: str | None = None
    """Name of the run in gpumon. Unset: recipe and rung."""
    quiet: bool = False
    """No progress line."""

    def __new__(cls, **given: object) -> TrainConfig:
        config = super().__new__(cls)
        config.__dict__["_explicit"] = frozenset(given)
        return config

    @property
    def explicit(self) -> frozenset[str]:
        """Names of the options that were given: they win over tiers even when equal to the default."""
        return frozenset(self.__dict__["_explicit"])

    def __post_init__(self) -> None:
        for name in (item.name for item in fields(self)):
            value, least = getattr(self, name), self.least_of(name)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if number and not least <= value < math.inf and name not in self.POSITIVE:
                raise TrainerError(f"--{name} must be at least {least}, not {value}")
        for name in self.POSITIVE:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise TrainerError(f"--{name} must be positive, not {value}")
        if not 0 < self.validation_fraction < 1:
            raise TrainerError(
                f"--validation_fraction must be between 0 and 1, not {self.validation_fraction}"
            )

    @classmethod
    def least_of(cls, name: str) -> float:
        """The smallest value of an option that is a number: 1 unless a class says otherwise."""
        tables: list[dict[str, float]] = [vars(base).get("LEAST", {}) for base in cls.__mro__]
        return next((table[name] for table in tables if name in table), 1)

    def replace(self, **changes: object) -> Self:
        """A copy with changes, validated again; what was given explicitly stays so."""
        copy = dataclasses.replace(self, **changes)  # type: ignore[arg-type]
        copy.__dict__["_explicit"] = self.explicit | frozenset(changes)
        return copy
