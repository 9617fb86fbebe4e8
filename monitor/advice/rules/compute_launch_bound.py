"""The GPU waits for the CPU to launch small kernels.

Looks at: device-side starved time without a wait for data, queue depth at most one, GPU use.
Why: When each kernel is shorter than the time to launch it, the queue is empty and the GPU idles between
    kernels; a faster GPU would not help.
Remedy: a larger batch, `torch.compile(mode='reduce-overhead')`, CUDA graphs, fewer and larger operations.
Gain: the starved time of the device, at most.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule("compute.launch_bound", suppresses=("compute.compile_off", "compute.small_batch", "compute.batch_room"))
def check(run: RunContext) -> Advice | None:
    device = run.lead.device_times if run.lead else None
    if not run.has_cuda or device is None or device.starved_ratio is None or run.period is None:
        return None
    waiting = run.share("data") + run.share("sync") + run.share("validate") + run.share("checkpoint")
    starved = device.starved_ratio - waiting
    if starved < run.policy.starved_share or (device.queue_depth or 0.0) > 1.5:
        return None
    saved = starved * run.period
    depth = f"{device.queue_depth:.1f}" if device.queue_depth is not None else "unknown"
    larger = (run.batch_size or 0) * 2
    return Advice(
        title=f"Launch-bound: the GPU has no work for {percent(starved)} of the step although no data is "
        "waited for "
        f"(queue depth {depth})",
        remedy='Launch less: `torch.compile(model, mode="reduce-overhead")` (CUDA graphs)'
        + (f", or batch_size {run.batch_size} → {larger}" if larger else "")
        + "; few large operations instead of many small ones.",
        change='+ model = torch.compile(model, mode="reduce-overhead")',
        evidence={
            "starved_ratio": device.starved_ratio,
            "starved_without_data": starved,
            "queue_depth": device.queue_depth,
            "batch_size": run.batch_size,
        },
        what=Change(savings=(Saving("*", 0.6 * saved, "launch"),)),
        low=Change(savings=(Saving("*", 0.2 * saved, "launch"),)),
        high=Change(savings=(Saving("*", saved, "launch"),)),
        because=f"at most the {seconds(saved)} a step in which the device has nothing to do",
    )
