"""A GPU no longer responds.

Looks at: the state the GPU reader gives: lost, hung or error.
Why: A lost GPU takes its run with it; everything else on the machine keeps working, the monitor included.
Remedy: look at the kernel log, reset or reboot.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.rule import Advice, machine_rule


@machine_rule("device.lost", "Device failure", suppresses=("device.*", "transfer.pcie_degraded"))
def check(machine: MachineContext) -> list[Advice]:
    return [
        Advice(
            title=f"GPU {gpu.index} is {gpu.state}: "
            f"{gpu.state_detail or 'the driver does not answer for it'}",
            remedy="Look at the kernel log for XID 79 or 119; reset the GPU, or drain and reboot the "
            "machine.",
            change=f"dmesg | grep -i xid; nvidia-smi -i {gpu.index} --gpu-reset",
            evidence={"state": gpu.state, "age_seconds": gpu.age_seconds},
            severity="critical",
            gpu=gpu.uuid,
        )
        for gpu in machine.snapshot.gpus
        if gpu.state != "ok"
    ]
