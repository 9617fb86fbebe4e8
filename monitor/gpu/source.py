"""Where GPU readings come from: one protocol, and `open_source`, which picks the implementation.

The contract of every source: `read` never raises and never blocks past its deadline, whatever the driver
does; what a card does not answer is None; simulated readings are marked as such.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from monitor.gpu.awaited import AwaitedSource, has_library
from monitor.model.errors import UserError
from monitor.model.gpu import Gpu, Source
from monitor.model.snapshot import Snapshot

if TYPE_CHECKING:
    from monitor.model.clock import Moment

Kind = Literal["auto", "nvml", "simulated", "none"]
MAX_SIMULATED_GPUS = 256


class GpuReadings(Struct, frozen=True):
    """What one tick returned: the state of the source itself, and every GPU it knows."""

    source: Source
    gpus: tuple[Gpu, ...] = ()


class GpuSource(Protocol):
    """NVML, the simulation, or nothing at all: the rest of gpumon cannot tell the difference."""

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings: ...

    def close(self) -> None: ...


class NoSource:
    """`--source none`: the host only, on request."""

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings:
        return GpuReadings(Source(kind="none", detail="GPU readings are switched off (source: none)."))

    def close(self) -> None:
        return None


def open_source(
    kind: Kind, *, gpus: int = 1, scenario: Path | None = None, interval: float = 1.0
) -> GpuSource:
    """The source named `kind`. Imports happen here: a simulation needs no pynvml."""
    if kind == "simulated":
        return _simulated(gpus, scenario)
    if scenario is not None:
        raise UserError(f"a scenario needs the simulated source, not {kind!r}", hint="add --source simulated")
    if kind == "none":
        return NoSource()
    if kind == "nvml":
        return _nvml(interval, required=True)
    if kind == "auto":
        optional = partial(_nvml, interval)
        return optional() if has_library() else AwaitedSource(optional)
    raise UserError(f"unknown GPU source {kind!r}", hint="sources: auto, nvml, simulated, none")


def _nvml(interval: float, *, required: bool = False) -> GpuSource:
    from monitor.gpu.nvml import NvmlSource

    return NvmlSource(interval=interval, required=required)


def _simulated(gpus: int, scenario: Path | None) -> GpuSource:
    from monitor.gpu.scenario import EMPTY, load_scenario
    from monitor.gpu.simulated import SimulatedSource

    if not 1 <= gpus <= MAX_SIMULATED_GPUS:
        raise UserError(f"--gpus must be 1 to {MAX_SIMULATED_GPUS}, not {gpus}")
    return SimulatedSource(gpus, load_scenario(scenario, gpus) if scenario else EMPTY)
