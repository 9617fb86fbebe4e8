"""The simulated source: N cards whose use follows the live training runs. Always labelled as such.

Deterministic: the same times, snapshots and scenario give the same readings. That makes it the basis of the
demo, the screenshots and the tests, alongside the NVML path on the stand-in library.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from monitor.gpu import physics
from monitor.gpu.physics import Card
from monitor.gpu.scenario import Forces, Scenario
from monitor.gpu.simulated_card import NAME, describe, limit_watts
from monitor.gpu.source import GpuReadings
from monitor.gpu.workload import Key, Load, loads_by_card
from monitor.model.clock import Moment
from monitor.model.gpu import Errors, Gpu, GpuState, Range, Source
from monitor.model.snapshot import Snapshot

DETAIL = "Simulated GPUs: their use follows the training runs, nothing here was measured on a card."
LONGEST_STEP = 600.0
STATE_DETAIL = {
    "lost": "simulated: the GPU has fallen off the bus",
    "hung": "simulated: driver calls for this GPU do not return",
    "error": "simulated: the driver is not loaded",
}


@dataclass(slots=True)
class _Slot:
    """A card, its counters, and its last good reading."""

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
        """Advance every card to `now` under the load of the runs in `previous`."""
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
            slot.last, slot.last_good = _shown(slot, loads, forces, ranges), now.monotonic
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
        """Integrate from the last tick to this one; a card that does not answer keeps running."""
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
                width, _wanted_use(loads, forces, unrest), limit_watts(forces), forces.heat, forces.clock
            )
            use.append(slot.card.use)
            watts.append(slot.card.power)
            hertz.append(slot.card.clock)
        return {
            "utilization_ratio": _range(use),
            "power_watts": _range(watts),
            "sm_clock_hertz": _range(hertz),
        }


def _shown(slot: _Slot, loads: list[Load], forces: Forces, ranges: dict[str, Range]) -> Gpu:
    return describe(slot.index, slot.uuid, slot.card, loads, forces, errors=slot.errors, ranges=ranges)


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


def _wanted_use(loads: list[Load], forces: Forces, unrest: float) -> float:
    """Several ranks share a card: their combined use is at most 1."""
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
