"""All cores are busy: more workers cannot load faster.

Looks at: CPU utilization of the machine, workers relative to cores, the wait for data.
Why: When the cores are full, another worker only takes time from the others; the work itself has to
    shrink or move.
Remedy: cheaper samples (precompute, smaller images, `__getitems__`), work moved to the GPU, or more
    cores.
Gain: what halving the loader's work would give.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

WORK_LEFT = Bounds(low=0.8, likely=0.5, high=0.2)
"""Share of the work per sample that remains. Judgement: how far it can shrink is unknown."""


@rule("input.cpu_saturated", "CPU saturated", suppresses=("input.bound", "input.too_few_workers"))
def check(run: RunContext) -> Advice | None:
    cpu, workers, cores = run.snapshot.host.cpu, run.workers, run.cores
    if cpu is None or cpu.utilization_ratio is None or not workers or cores is None:
        return None
    if cpu.utilization_ratio < run.policy.cpu_full or not loading.starved(run) or loading.waits(run):
        return None
    own = sum(process.cpu_ratio or 0.0 for process in run.processes)
    if own < run.policy.own_cpu_full * cores:
        return None
    return Advice(
        title=f"CPU saturated: {units.whole(cores)} cores at {units.percent(cpu.utilization_ratio)} with "
        f"{workers} workers, and {units.percent(loading.data_share(run))} of the step still waits for data",
        detail=loading.sample_text(run),
        remedy="More workers will not help. Make samples cheaper: prepare them once, vectorise "
        "`__getitem__`, or move the augmentation to the GPU.",
        evidence={
            "cpu_utilization_ratio": cpu.utilization_ratio,
            "num_workers": workers,
            "cores": cores,
            "data_share": loading.data_share(run),
        },
        gain=WORK_LEFT.of(lambda left: Change(work_left=left)),
        because="if the work in a sample is halved",
    )
