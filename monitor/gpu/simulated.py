"""The simulated source: N cards whose use follows the live training runs. Never silent about it.

Deterministic: the same times, snapshots and scenario give the same readings. That makes it the
ground of the demo, of screenshots and of tests, beside the NVML path on the stand-in library.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from monitor.clock import Moment
from monitor.gpu import physics
from monitor.gpu.physics import Card
from monitor.gpu.scenario import Forces, Scenario
from monitor.gpu.source import GpuReadings
from monitor.gpu.workload import Key, Load, loads_by_card
from monitor.snapshot import (
    THROTTLE_REASONS,
    Activity,
    Errors,
    Gpu,
    GpuProcess,
    GpuState,
    Nvlink,
    Pcie,
    Range,
    Snapshot,
    Source,
)

NAME = "gpumon simulated GPU 80GB"
DETAIL = "Simulated GPUs: their use follows the training runs, nothing here was measured on a card."
PCIE_GENERATION, PCIE_WIDTH = 5, 16
PCIE_LANE_BYTES = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.97e9, 5: 3.94e9, 6: 7.56e9, 7: 15.1e9}
NVLINKS, NVLINK_BYTES = 18, 25e9
LONGEST_STEP = 600.0
STATE_DETAIL = {
    "lost": "simulated: the GPU has fallen off the bus",
    "hung": "simulated: driver calls for this GPU do not return",
    "error": "simulated: the driver is not loaded",
}


@dataclass(slots=True)
class _Slot:
    """A card, what has been counted on it, and its last good reading."""

    index: int
    uuid: str
    card: Card = field(default_factory=Card)
    errors: Errors = field(
        default_factory=lambda: Errors(
            ecc_corrected_volatile=0,
            ecc_uncorrected_volatile=0,
            ecc_corrected_aggregate=0,
            ecc_uncorrected_aggregate=0,
            remapped_rows_corrected=0,
            remapped_rows_uncorrected=0,
            remapped_rows_pending=False,
            remapped_rows_failed=False,
        )
    )
    last: Gpu | None = None
    last_good: float = 0.0


class SimulatedSource:
    """See the module's docstring; `scenario` is already checked against the number of cards."""

    def __init__(self, gpus: int, scenario: Scenario) -> None:
        self._scenario = scenario
        self._slots = [_Slot(index, f"GPU-51111111-0000-4000-8000-{index:012d}") for index in range(gpus)]
        self._uuids = [slot.uuid for slot in self._slots]
        self._seats: dict[Key, int] = {}
        self._started: float | None = None
        self._before = -1.0

    def read(self, now: Moment, previous: Snapshot | None) -> GpuReadings:
        """Move every card to `now` under the load of the runs in `previous`."""
        if self._started is None:
            self._started = now.monotonic
        clock = now.monotonic - self._started
        loads = loads_by_card(previous, self._uuids, self._seats)
        gpus: list[Gpu] = []
        gone = False
        for slot, load in zip(self._slots, loads, strict=True):
            forces = self._scenario.forces(slot.index, self._before, clock)
            gone |= forces.driver_gone
            if not forces.removed:
                gpus.append(self._card(slot, load, forces, now, clock))
        self._before = clock
        return GpuReadings(_source(gone), tuple(gpus))

    def close(self) -> None:
        return None

    def _card(self, slot: _Slot, loads: list[Load], forces: Forces, now: Moment, clock: float) -> Gpu:
        ranges = self._advance(slot, loads, forces, clock)
        slot.errors = _errors(slot.errors, forces, now)
        state: GpuState = "error" if forces.driver_gone else forces.state
        if state == "ok":
            slot.last, slot.last_good = _gpu(slot, loads, forces, ranges), now.monotonic
            return slot.last
        last = slot.last or Gpu(index=slot.index, uuid=slot.uuid, name=NAME, simulated=True)
        return msgspec.structs.replace(
            last,
            state=state,
            state_detail=STATE_DETAIL[state],
            age_seconds=now.monotonic - slot.last_good if slot.last else 0.0,
            errors=slot.errors,
        )

    def _advance(self, slot: _Slot, loads: list[Load], forces: Forces, clock: float) -> dict[str, Range]:
        """Integrate from the last tick to this one; a card that does not answer still runs on."""
        seconds = min(LONGEST_STEP, max(0.0, clock - self._before)) if self._before >= 0 else 0.0
        if not seconds:
            return {}
        count, width = physics.substeps(seconds)
        use: list[float] = []
        watts: list[float] = []
        hertz: list[float] = []
        for number in range(count):
            unrest = physics.ripple(slot.index, clock - seconds + number * width)
            slot.card.step(
                width, _wanted_use(loads, forces, unrest), _limit(forces), forces.heat, forces.clock
            )
            use.append(slot.card.use)
            watts.append(slot.card.power)
            hertz.append(slot.card.clock)
        return {
            "utilization_ratio": _range(use),
            "power_watts": _range(watts),
            "sm_clock_hertz": _range(hertz),
        }


def _source(driver_gone: bool) -> Source:
    if driver_gone:
        return Source(kind="simulated", ok=False, detail=f"{DETAIL} The simulated driver is not loaded.")
    return Source(
        kind="simulated",
        detail=DETAIL,
        driver_version="simulated",
        cuda_version="simulated",
        nvml_version="simulated",
    )


def _range(values: list[float]) -> Range:
    return Range(min(values), sum(values) / len(values), max(values), len(values))


def _limit(forces: Forces) -> float:
    return min(physics.LIMIT_WATTS, forces.power_limit or physics.LIMIT_WATTS)


def _wanted_use(loads: list[Load], forces: Forces, unrest: float) -> float:
    """Several ranks on one card share it: their use adds up to at most 1."""
    use = min(1.0, sum(load.busy for load in loads) + (forces.busy or 0.0))
    return min(1.0, max(0.0, use * (1.0 + 0.012 * unrest)))


def _errors(errors: Errors, forces: Forces, now: Moment) -> Errors:
    """Counters after this tick's events."""
    if not (forces.xids or forces.corrected or forces.uncorrected or forces.remapped):
        return errors
    counts = dict(errors.xid_counts)
    for code in forces.xids:
        counts[str(code)] = counts.get(str(code), 0) + 1
    return msgspec.structs.replace(
        errors,
        ecc_corrected_volatile=(errors.ecc_corrected_volatile or 0) + forces.corrected,
        ecc_corrected_aggregate=(errors.ecc_corrected_aggregate or 0) + forces.corrected,
        ecc_uncorrected_volatile=(errors.ecc_uncorrected_volatile or 0) + forces.uncorrected,
        ecc_uncorrected_aggregate=(errors.ecc_uncorrected_aggregate or 0) + forces.uncorrected,
        remapped_rows_uncorrected=(errors.remapped_rows_uncorrected or 0) + forces.remapped,
        remapped_rows_pending=bool(errors.remapped_rows_pending or forces.remapped),
        xid_counts=counts,
        xid_last=forces.xids[-1] if forces.xids else errors.xid_last,
        xid_last_time=now.wall if forces.xids else errors.xid_last_time,
    )


def _gpu(slot: _Slot, loads: list[Load], forces: Forces, ranges: dict[str, Range]) -> Gpu:
    card = slot.card
    return Gpu(
        index=slot.index,
        uuid=slot.uuid,
        name=NAME,
        simulated=True,
        pci_bus_id=f"0000:{slot.index + 16:02X}:00.0",
        minor=slot.index,
        architecture="simulated",
        compute_capability="9.0",
        utilization_ratio=round(card.use, 2),
        memory_utilization_ratio=round(0.55 * card.use, 2),
        encoder_utilization_ratio=0.0,
        decoder_utilization_ratio=0.0,
        memory_used_bytes=_memory_used(loads, forces),
        memory_total_bytes=physics.MEMORY_TOTAL,
        memory_reserved_bytes=physics.MEMORY_RESERVED,
        power_watts=round(card.power, 2),
        power_limit_watts=_limit(forces),
        energy_joules=round(card.energy, 3),
        temperature_celsius=float(round(card.temperature)),
        temperature_slowdown_celsius=physics.SLOWDOWN,
        temperature_shutdown_celsius=physics.SHUTDOWN,
        memory_temperature_celsius=float(round(card.memory_temperature)),
        memory_temperature_limit_celsius=physics.MEMORY_LIMIT,
        sm_clock_hertz=float(round(card.clock / 15e6) * 15e6),
        sm_clock_max_hertz=physics.SM_MAX,
        memory_clock_hertz=card.memory_clock,
        memory_clock_max_hertz=physics.MEM_MAX,
        pstate=card.pstate,
        fan_ratio=round(card.fan, 2),
        throttle=_throttle(card, forces),
        pcie=_pcie(card, loads, forces),
        nvlink=_nvlink(card, loads),
        errors=slot.errors,
        activity=_activity(card, loads),
        mig_enabled=False,
        processes=_processes(card, loads),
        ranges=ranges,
    )


def _memory_used(loads: list[Load], forces: Forces) -> int:
    room = physics.MEMORY_TOTAL - physics.MEMORY_RESERVED
    used = physics.MEMORY_IDLE + sum(load.memory for load in loads)
    return int(min(room, max(used, forces.memory * physics.MEMORY_TOTAL)))


def _throttle(card: Card, forces: Forces) -> dict[str, bool]:
    active = set(forces.reasons)
    if card.use < 0.02:
        active.add("gpu_idle")
    if card.capped:
        active.add("sw_power_cap")
    if card.thermal:
        active.add("sw_thermal_slowdown")
    return {reason: reason in active for reason in THROTTLE_REASONS}


def _pcie(card: Card, loads: list[Load], forces: Forces) -> Pcie:
    """An idle link saves power at generation 1, as real ones do; the width stays."""
    generation = forces.pcie_generation or (PCIE_GENERATION if card.use >= 0.02 else 1)
    width = forces.pcie_width or PCIE_WIDTH
    full = PCIE_LANE_BYTES[generation] * width
    share = min(1.0, sum(load.transfer for load in loads)) if card.use >= 0.02 else 0.0
    return Pcie(
        generation=generation,
        generation_max=PCIE_GENERATION,
        width=width,
        width_max=PCIE_WIDTH,
        receive_bytes_per_second=round(0.8 * full * share, 0),
        transmit_bytes_per_second=round(0.05 * full * share, 0),
        replays=0,
    )


def _nvlink(card: Card, loads: list[Load]) -> Nvlink:
    """Traffic when ranks of one run exchange gradients; a lone rank has nobody to talk to."""
    talking = any(load.ranks > 1 for load in loads)
    flow = 0.2 * NVLINKS * NVLINK_BYTES * card.use if talking else 0.0
    return Nvlink(
        links_active=NVLINKS,
        transmit_bytes_per_second=flow,
        receive_bytes_per_second=flow,
        bandwidth_bytes_per_second=NVLINKS * NVLINK_BYTES,
    )


def _activity(card: Card, loads: list[Load]) -> Activity:
    tensor = 0.42 if any(load.tensor for load in loads) else 0.02
    return Activity(
        sm_active_ratio=round(0.88 * card.use, 3),
        sm_occupancy_ratio=round(0.41 * card.use, 3),
        tensor_active_ratio=round(tensor * card.use, 3),
        dram_active_ratio=round(0.47 * card.use, 3),
    )


def _processes(card: Card, loads: list[Load]) -> tuple[GpuProcess, ...]:
    """The ranks on this card; the card's use is shared out by what each asked for."""
    wanted = sum(load.busy for load in loads)
    return tuple(
        GpuProcess(
            pid=load.pid,
            memory_bytes=load.memory,
            sm_ratio=round(card.use * load.busy / wanted, 3) if wanted else 0.0,
        )
        for load in loads
    )
