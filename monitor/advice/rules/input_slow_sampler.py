"""The sampler is slow: choosing the indices of a batch costs more than it should.

Looks at: time spent in the sampler or batch sampler per batch against the rest of the loader.
Why: The sampler runs in the main process even with workers, so its time is paid in every step.
Remedy: cache what the sampler looks up (labels, modalities, lengths) once, draw whole epochs with one
    `torch.randperm`.
Gain: the step without the sampler's exposed time.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving


@rule(
    "input.slow_sampler",
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
    if share < 0.4 or cost < 0.05 * run.model.period:
        return None
    name = run.setting("loader", "batch_sampler") or run.setting("loader", "sampler") or "the sampler"
    spot = loading.hot_part(run, "sampler")
    where = f", most of it in {spot.words}" if spot else ""
    saved = min(cost * 0.95, run.model.wait)
    return Advice(
        title=f"Slow sampler: `{name}` takes {seconds(cost)} a batch, {percent(share)} of loading{where}",
        remedy=f"Build what `{name}` looks up once (in its `__init__`) and draw the epoch's indices in one "
        "vectorised "
        "go; per batch only slice them. Workers do not help: the sampler runs in the main process.",
        change=f"  class {name}:\n      def __init__(self, …):\n+         self.by_label = "
        "build_index(dataset)   # once\n"
        f"      def __iter__(self):\n-         {spot.code if spot else '# scan the data set'}\n"
        "+         # look up in self.by_label",
        evidence={
            "sampler_seconds": cost,
            "sampler_share_of_loader": share,
            "data_share": loading.data_share(run),
            "sampler": name,
            "hot_line": spot.place if spot else None,
        },
        what=Change(savings=(Saving("data", saved, "sampler"),)),
        because=f"{seconds(saved)} of {seconds(run.model.period)} a step is the sampler",
    )
