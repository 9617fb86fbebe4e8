"""The GPU's PCIe link is slower than the card and the slot allow.

Looks at: current link generation and width compared with their maximum, while the GPU is busy; replays.
Why: A card seated badly, a riser, or a slot shared with another device halves or quarters the bandwidth
    of every copy. (An idle GPU lowers its link on purpose: only a busy one counts.)
Remedy: reseat the card, try another slot, check the BIOS; switch off the link's power saving.
Gain: copy time by the ratio of the bandwidths.
"""

from __future__ import annotations

from monitor.advice.context.machine import MachineContext
from monitor.advice.prediction.gain import speedup
from monitor.advice.rule import Advice, machine_rule
from monitor.model import units
from monitor.model.gpu import Gpu
from monitor.model.snapshot import Snapshot

MOST_COPIES = 0.9
"""At most this share of the step is copies: something is also computed."""


@machine_rule("transfer.pcie_degraded", "Degraded PCIe link")
def check(machine: MachineContext) -> list[Advice]:
    found = [_check(gpu, machine) for gpu in machine.snapshot.gpus if gpu.state == "ok"]
    return [advice for advice in found if advice is not None]


def _check(gpu: Gpu, machine: MachineContext) -> Advice | None:
    link = gpu.pcie
    if None in (link.generation, link.generation_max, link.width, link.width_max):
        return None
    now = 2.0 ** (link.generation or 1) * (link.width or 1)
    best = 2.0 ** (link.generation_max or 1) * (link.width_max or 1)
    narrow = (link.width or 0) < (link.width_max or 0)
    if now >= best or not (narrow or (gpu.utilization_ratio or 0.0) > machine.policy.link_busy):
        return None
    share = _copy_share(gpu, machine.snapshot)
    gain = 1.0 / (1.0 - share * (1.0 - now / best))
    return Advice(
        title=f"PCIe link degraded on GPU {gpu.index}: generation {link.generation} x{link.width} instead of "
        f"{link.generation_max} x{link.width_max}, {units.percent(now / best)} of the bandwidth",
        remedy="Reseat the card or move it to another slot, look for a riser or a shared slot, check the "
        "BIOS.",
        change=f"nvidia-smi -q -i {gpu.index} -d PCIE   # link now and maximum, replays",
        evidence={
            "generation": link.generation,
            "generation_max": link.generation_max,
            "width": link.width,
            "width_max": link.width_max,
            "bandwidth_ratio": now / best,
            "replays": link.replays,
            "transfer_share": share,
        },
        speedup=speedup(1.0, gain, gain, "copies at full bandwidth"),
        share=share * (1.0 - now / best),
        severity="warning",
        gpu=gpu.uuid,
    )


def _copy_share(gpu: Gpu, snapshot: Snapshot) -> float:
    """Share of the step that the runs on this GPU spend in copies."""
    shares = [
        phase.share
        for run in snapshot.runs
        if gpu.uuid in run.gpu_uuids
        for phase in run.phases
        if phase.name == "transfer"
    ]
    return min(MOST_COPIES, max(shares, default=0.0))
