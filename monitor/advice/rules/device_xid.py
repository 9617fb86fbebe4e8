"""The driver reported an XID error.

Looks at: XID events since the daemon started.
Why: An XID is the driver's own report that something went wrong: a crashed kernel, a memory fault, a card
    fallen off the bus.
Remedy: depends on the code: application error, ECC, or hardware.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.rule import Advice, machine_rule
from monitor.model.gpu import Gpu

MEANING = {
    13: "graphics engine exception: an illegal access in a kernel",
    31: "memory page fault: an illegal address in a kernel",
    43: "the channel was stopped: the application crashed",
    45: "preemptive clean-up after an error",
    48: "double-bit ECC error",
    63: "a memory row was remapped or a page retired",
    64: "remapping or retiring failed",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    94: "contained ECC error",
    95: "uncontained ECC error",
    119: "the GPU system processor does not answer",
}
APPLICATION = (13, 31, 43, 45)


@machine_rule("device.xid", "XID errors")
def check(machine: MachineContext) -> list[Advice]:
    return [advice for gpu in machine.snapshot.gpus if (advice := _check(gpu)) is not None]


def _check(gpu: Gpu) -> Advice | None:
    last, counts = gpu.errors.xid_last, gpu.errors.xid_counts
    if last is None or not counts:
        return None
    application = last in APPLICATION
    return Advice(
        title=f"XID {last} on GPU {gpu.index}: {MEANING.get(last, 'see the driver documentation')}",
        remedy="Look for the failing kernel (compute-sanitizer, CUDA_LAUNCH_BLOCKING=1)."
        if application
        else "Drain and reset the GPU; a card that reports it again should be replaced.",
        change=f"dmesg | grep -i xid; nvidia-smi -i {gpu.index} -q",
        evidence={"xid": last, "counts": dict(counts), "time": gpu.errors.xid_last_time},
        severity="warning" if application else "critical",
        gpu=gpu.uuid,
    )
