"""The loader has workers, but too few for what a batch costs.

Looks at: workers, the loader's seconds per batch, the exposed wait for data, cores.
Why: Workers load while the model computes; if together they make batches more slowly than the model consumes
    them, the step takes as long as the loader.
Remedy: raise `num_workers` to what the cores allow; past that only cheaper samples help.
Gain: step ≈ max(rest, work / workers, all CPU work / cores) with the new number of workers.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import frameworks, loading
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

LEAST_GAIN_WORKERS, LEAST_GAIN_WORK, WORK_PER_CORE, MOST_GAIN_WORK = 2 / 3, 1.15, 0.4, 0.85
"""Share of the suggested workers and factor on the loader's work for the lowest gain, how much more per core
that others keep busy, and the factor for the highest gain. Judgement."""


@rule(
    "input.too_few_workers",
    "Too few workers",
    settings=("loader.num_workers",),
    suppresses=("input.bound", "compute.small_batch"),
)
def check(run: RunContext) -> Advice | None:
    workers, cores = run.workers, run.cores
    if not workers or cores is None or run.load_work is None or not loading.starved(run):
        return None
    best, period = loading.best_workers(run)
    if best <= workers or period > run.policy.workers_gain * run.model.period:
        return None
    kind = "mostly waits (I/O)" if loading.waits(run) else "computes"
    return Advice(
        title=f"Too few loader workers: {workers} worker{'s'[: workers > 1]} at "
        f"{units.seconds(run.load_work)} a batch cannot keep up, "
        f"{units.percent(loading.data_share(run))} of the step waits for data",
        detail=loading.sample_text(run),
        remedy=f"Raise num_workers from {workers} to {best}: making a sample {kind}, and there are "
        f"{units.whole(cores)} cores." + frameworks.setting(run, "workers", workers=best),
        change=loading.with_workers(run, best),
        knobs=loading.worker_knobs(best),
        effect=loading.effect_of_workers(run, best),
        price="memory of a process for each worker",
        evidence={
            "num_workers": workers,
            "suggested_workers": best,
            "batch_work_seconds": run.load_work,
            "data_share": loading.data_share(run),
            "getitem_seconds": loading.getitem_seconds(run),
            "cores": cores,
        },
        gain=Outcomes(
            low=Change(
                workers=max(workers, int(LEAST_GAIN_WORKERS * best)),
                work_left=LEAST_GAIN_WORK + WORK_PER_CORE * run.other_cores,
            ),
            likely=Change(workers=best),
            high=Change(workers=best, work_left=MOST_GAIN_WORK),
        ),
        because=f"{best} workers make a batch every {units.seconds(run.model.work / best)}",
    )
