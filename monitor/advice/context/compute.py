"""What a run's compute consists of: where the passes are, and how many cores they use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from monitor.advice.context.figures import RunFigures
from monitor.advice.prediction.lanes import UNTOLD_LAUNCHES, Lanes, place
from monitor.advice.prediction.step_graph import Segment, StepGraph, told
from monitor.model import units
from monitor.model.devices import BUSY
from monitor.model.run import Device

FORWARD_SEEN = 0.1
"""A forward pass takes at least this share of backward; less means that it was not timed as such."""
BETWEEN_SHARE = 0.4
"""If lines of modules take this share of the time between steps, a forward pass is assumed there."""
OFTEN = 0.5
"""How often the queue must be empty at the end of a phase for its unmeasured time to count as idle."""
READING = ("sync", "log", "between", "other")
"""Phases in which a loop usually reads a value."""


class ComputeFigures(RunFigures):
    """The passes, as rules about compute see them."""

    @cached_property
    def forward_phases(self) -> tuple[str, ...]:
        """Where the forward pass is: without a loader to mark its start it is part of "other", and with two
        models in a step also of "between"."""
        if self.seconds("forward") > FORWARD_SEEN * self.seconds("backward"):
            return ("forward", "backward")
        between = [spot.share for spot in self.hotspots if (spot.phase, spot.kind) == ("between", "module")]
        return ("other", "between", "backward") if sum(between) >= BETWEEN_SHARE else ("other", "backward")

    @property
    def compute_share(self) -> float:
        """Share of the step in forward and backward; of the device's time, if known."""
        if self.lanes is not None and self.lanes.period > 0:
            busy = sum(self.lanes.busy.get(phase, 0.0) for phase in self.forward_phases)
            return busy / self.lanes.period
        return sum(self.share(phase) for phase in self.forward_phases)

    @property
    def device(self) -> Device | None:
        """The leading rank's device times, if measured."""
        return self.lead.device_times if self.lead and self.lead.device_times.time else None

    @cached_property
    def lanes(self) -> Lanes | None:
        """Host and device within one step; None if not measured, or if the figures do not add up."""
        if self.device is None or self.period is None or self.run.other_devices:
            return None  # a gap of this device may be work of another
        device = self.device
        lanes = self._measured_lanes(device)
        graphs = [self._graph_of_window(lanes)]
        graphs += [self._graph_of_phases(lanes)] if lanes.add_up(self.period) else []
        fitted = (lanes.fitted(graph, self.phases, device.bound != "device") for graph in graphs)
        return next((one for one in fitted if one is not None), None)

    def _measured_lanes(self, device: Device) -> Lanes:
        """Work and gaps by phase; scaled to how busy the device was, if the records know it."""
        idle = {phase: _most_idle(device, phase) for phase in device.time}
        busy = {phase: max(0.0, took - idle[phase]) for phase, took in device.time.items()}
        ahead = {phase: 1.0 - empty for phase, empty in device.queue_empty.items()}
        whole = sum(device.time.values())
        if device.busy_ratio is None or device.starved_ratio is None:
            return Lanes(busy, idle, ahead)
        return Lanes(
            _summing(busy, device.busy_ratio * whole), _summing(idle, device.starved_ratio * whole), ahead
        )

    def _graph_of_window(self, lanes: Lanes) -> StepGraph:
        """The graph of the steps the SDK sampled, plus the phases those steps did not have."""
        graph = told(self.setting("step_graph"))
        if graph is None:
            return StepGraph()
        rare = {phase: took for phase, took in self.phases.items() if phase not in graph.own}
        return graph.and_then(rare, lanes.busy, UNTOLD_LAUNCHES)

    def _graph_of_phases(self, lanes: Lanes) -> StepGraph:
        """From the phase times alone. If the queue is never empty, the host must have waited; where it reads
        a value, all its time beyond the device's gap is waiting."""
        host = {phase: self.phases[phase] for phase in sorted(self.phases, key=place)}
        reads = max(
            (phase for phase in READING if phase in host), key=lambda phase: host[phase], default=None
        )
        if not self.scalar("sync.items_per_step") or reads is None:
            host |= {phase: took * (1.0 - lanes.ahead.get(phase, 0.0)) for phase, took in host.items()}
            host |= {"data": self.seconds("data")} if "data" in host else {}
            return StepGraph().and_then(host, lanes.busy, UNTOLD_LAUNCHES)
        host[reads] = min(host[reads], lanes.idle.get(reads, 0.0))
        graph = StepGraph().and_then(host, lanes.busy, UNTOLD_LAUNCHES)
        at = list(host).index(reads)
        wait = Segment(reads, 0.0, syncs=1.0)
        return replace(graph, segments=(*graph.segments[:at], wait, *graph.segments[at:]))

    def of_time(self, share: float) -> str:
        """A share of the step by the host's clock. With a device it says so: meanwhile the device may have
        work, and less is gained than the share suggests."""
        told = units.percent(share)
        return f"{told} of the time" if self.device is None else f"{told} of the host's time"

    @property
    def lanes_contradict(self) -> bool:
        """The device was timed, but host and device do not add up to the measured step."""
        return self.device is not None and self.lanes is None

    @property
    def a_device_is_busy(self) -> bool:
        """One of its devices has work nearly all the time."""
        full = self.device is not None and self.device.bound == "device"
        return full or any(
            one.idle_ratio is not None and one.idle_ratio < BUSY for one in self.run.other_devices
        )

    @cached_property
    def other_cores(self) -> float:
        """Cores that other processes usually keep busy; 0 if unknown."""
        return self._usual([point.other_cpu for point in self.history]) or 0.0

    @cached_property
    def trainer_cores(self) -> float | None:
        """Cores a training process usually keeps busy; None if unknown."""
        return self._usual([point.trainer_cpu for point in self.history])

    @staticmethod
    def _usual(values: Sequence[float | None]) -> float | None:
        known = sorted(value for value in values if value is not None)
        return known[len(known) // 2] if known else None


def _summing(parts: Mapping[str, float], whole: float) -> dict[str, float]:
    """The parts, scaled in proportion to add up to `whole`."""
    total = sum(parts.values())
    return {name: took * whole / total for name, took in parts.items()} if total > 0 else dict(parts)


def _most_idle(device: Device, phase: str) -> float:
    """Seconds per step the device is idle in a phase; if unknown but possible, the whole phase."""
    if phase in device.idle or device.starved_ratio is not None:
        return min(device.time[phase], device.idle.get(phase, 0.0))
    return device.time[phase] if device.queue_empty.get(phase, 0.0) >= OFTEN else 0.0
