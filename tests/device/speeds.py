"""How fast the stand-in is. The defaults are plausible for a mid-size card; none of them is measured."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Speeds:
    """A kernel takes kernel_us + bytes / bandwidth + FLOPs / rate, unless `kernels_us` names its operator."""

    devices: int = 2
    memory_gb: float = 16.0
    kernel_us: float = 2.0
    """Fixed time of every kernel."""
    bandwidth_gb_s: float = 800.0
    fp64_tflops: float = 0.5
    fp32_tflops: float = 15.0
    tf32_tflops: float = 60.0
    half_tflops: float = 120.0
    """fp16 and bf16."""
    launch_us: float = 5.0
    """Minimum host time of an operator; its own computation counts towards it."""
    latency_us: float = 4.0
    """From the launch to the earliest start on the device."""
    copy_us: float = 6.0
    """Fixed time of every copy between host and device."""
    pinned_gb_s: float = 12.0
    pageable_gb_s: float = 4.0
    queue_length: int = 1024
    """Launches that may be pending on a stream before the host has to wait."""
    compute_elements: int = 16_384
    """Operators on more elements than this are timed but not computed."""
    compute_flops: float = 2e6
    """So are those with more floating-point operations."""
    kernels_us: dict[str, float] = field(default_factory=dict)
    """Operator name without "aten::" → its kernel's time, instead of the model."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Speeds:
        return cls(**json.loads(text))
