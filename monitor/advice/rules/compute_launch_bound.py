"""The GPU waits for the CPU to launch small kernels.

Looks at: the device's gaps while the passes and the update are launched, whether its queue is empty at every
    mark of the loop, and whether the host's own time exceeds the device's work; kernels per step.
Why: When each kernel is shorter than the time to launch it, the queue is empty and the GPU idles between
    kernels; a faster GPU would not help.
Remedy: a larger batch, `torch.compile(mode='reduce-overhead')`, CUDA graphs, fewer and larger operations.
Gain: part of the host's launch time, by replaying the step; the device's own work stays.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence.compute_cost import own_change
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.lanes import BESIDE
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.2, likely=0.6, high=1.0)
"""Share of the host's launch time that goes: some launches stay, or a graph replays them all. Judgement;
never checked on a GPU here."""
ELSEWHERE = ("data", "rollout", *BESIDE)
"""Phases in which the host does more than launch the step."""


@rule(
    "compute.launch_bound",
    "Launch-bound",
    suppresses=("compute.compile_off", "compute.small_batch", "compute.batch_room"),
)
def check(run: RunContext) -> Advice | None:
    device, lanes = run.device, run.lanes
    if device is None or lanes is None or device.bound != "host":
        return None
    phases = {phase for phase in lanes.idle if phase not in ELSEWHERE}
    idle = sum(lanes.idle.get(phase, 0.0) for phase in phases) - (device.copy_idle_seconds or 0.0)
    share = idle / lanes.period
    if share < run.policy.starved_share or not _queue_empty(run, phases):
        return None
    if _too_slow(run, phases) < run.policy.starved_share:
        return None  # it waits for the device in between: without that it could launch ahead
    many = f" between {units.whole(device.kernels)} kernels" if device.kernels else ""
    larger = (run.batch_size or 0) * 2
    return Advice(
        title=f"Launch-bound: the GPU has no work for {units.percent(share)} of the step{many}: "
        "the CPU cannot launch them as fast as they run",
        remedy='Launch less: `torch.compile(model, mode="reduce-overhead")` (CUDA graphs)'
        + (f", or batch_size {run.batch_size} → {larger}" if larger else "")
        + "; few large operations instead of many small ones.",
        knobs={"model.compiled": "on"},
        effect="rounding",
        evidence={
            "starved_ratio": device.starved_ratio,
            "launch_idle_share": share,
            "kernels_per_step": device.kernels,
            "batch_size": run.batch_size,
        },
        gain=SAVED.part_of(own_change(run, phases, "launch")),
        because=f"at most the {units.seconds(idle)} a step in which the device waits for a launch",
    )


def _too_slow(run: RunContext, phases: set[str]) -> float:
    """Share of the step by which the host's own time in these phases exceeds the device's work."""
    lanes = run.lanes
    assert lanes is not None
    own = sum(lanes.graph.own.get(phase, 0.0) for phase in phases)
    return (own - lanes.graph.work) / lanes.graph.played.period


def _queue_empty(run: RunContext, phases: set[str]) -> bool:
    """Whether the queue is empty at the end of the phases that take the time."""
    lanes = run.lanes
    assert lanes is not None
    ends = [phase for phase in phases if lanes.idle.get(phase, 0.0) > run.policy.hint_share * lanes.period]
    return all(lanes.ahead.get(phase, 0.0) <= run.policy.queue_ahead for phase in ends)
