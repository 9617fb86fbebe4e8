"""The sampler is slow: choosing the indices of a batch costs more than it should.

Looks at: time spent in the sampler or batch sampler per batch relative to the rest of the loader.
Why: The sampler runs in the main process even with workers, so its time is paid in every step.
Remedy: cache what the sampler looks up (labels, modalities, lengths) once, draw whole epochs with one
    `torch.randperm`.
Gain: the step without the sampler's exposed time.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import loading
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = 0.95
"""Share of the sampler's time that is saved if it only slices. Judgement."""


@rule(
    "input.slow_sampler",
    "Slow sampler",
    suppresses=(
        "input.bound",
        "input.no_workers",
        "input.too_few_workers",
        "input.slow_getitem",
        "input.disk_bound",
    ),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    share = loading.part_share(run, "sampler")
    loader = run.lead.loader if run.lead else None
    if share is None or loader is None or not loading.starved(run):
        return None
    cost = loader.sampler_seconds or 0.0
    if share < run.policy.sampler_share or cost < run.policy.sampler_step_share * run.model.period:
        return None
    name = run.setting("loader", "batch_sampler") or run.setting("loader", "sampler") or "Sampler"
    spot = loading.hot_part(run, "sampler")
    where = f", most of it in {spot.text}" if spot else ""
    gone = min(SAVED * cost, run.model.wait)
    return Advice(
        title=f"Slow sampler: `{name}` takes {units.seconds(cost)} a batch, "
        f"{units.percent(share)} of loading{where}",
        remedy=f"Build what `{name}` looks up once (in its `__init__`) and draw the epoch's indices in one "
        "vectorised call; per batch only slice them. Workers do not help: the sampler runs in the main "
        "process.",
        effect="in_expectation",
        evidence={
            "sampler_seconds": cost,
            "sampler_share_of_loader": share,
            "data_share": loading.data_share(run),
            "sampler": name,
            "hot_line": spot.place if spot else None,
        },
        gain=Outcomes(saved("data", gone, "sampler")),
        because=f"{units.seconds(gone)} of {units.seconds(run.model.period)} a step is the sampler",
    )
