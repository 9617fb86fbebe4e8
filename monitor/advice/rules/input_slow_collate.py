"""Putting the samples of a batch together takes longer than making them.

Looks at: time in `collate_fn` per batch relative to fetching.
Why: A collate that loops in Python over samples or elements (padding, converting lists) is paid for every
    batch; it is usually one vectorised call.
Remedy: return tensors from `__getitem__` and use `torch.stack` / `pad_sequence`, or build the batch with
    a single indexing operation.
Gain: the loader's work without most of the collate.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = 0.9
"""Share of the collate that one vectorised call saves. Judgement."""
LEAST_LEFT, DOUBT_MORE, DOUBT_LESS = 0.05, 0.15, 0.6
"""Of the loader's work: the least that remains; how much more for the lowest gain; the factor for the
highest."""
DEFAULT_SECONDS, DEFAULT_SAMPLE_SECONDS = 2e-4, 20e-6
"""What torch's own collate costs per batch and per sample without being slow. An estimate for two cores."""


@rule(
    "input.slow_collate",
    "Slow collate",
    suppresses=("input.bound", "input.no_workers", "input.too_few_workers", "input.slow_getitem"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    share = loading.part_share(run, "collate")
    loader = run.lead.loader if run.lead else None
    if share is None or loader is None or share < run.policy.dominant_share or not loading.starved(run):
        return None
    name = run.setting("loader", "collate") or "collate_fn"
    cost = loader.collate_seconds or 0.0
    usual = max(DEFAULT_SECONDS, DEFAULT_SAMPLE_SECONDS * (run.batch_size or 1))
    if name == "default_collate" and (run.workers or cost < usual):
        return None
    if name != "default_collate" and run.setting("loader", "collate_own") is False:
        return None  # a library's, which the user cannot rewrite
    spot = loading.hot_part(run, "collate")
    where = f", most of it in {spot.text}" if spot else ""
    left = max(LEAST_LEFT, 1.0 - SAVED * share)
    return Advice(
        title=f"Slow collate: `{name}` takes {units.seconds(cost)} a batch, "
        f"{units.percent(share)} of loading{where}",
        remedy=_remedy(run, name, spot),
        effect="identical",
        evidence={
            "collate_seconds": loader.collate_seconds,
            "collate_share_of_loader": share,
            "data_share": loading.data_share(run),
            "collate": name,
            "hot_line": spot.place if spot else None,
        },
        gain=Bounds(low=min(1.0, left + DOUBT_MORE), likely=left, high=DOUBT_LESS * left).of(
            lambda share_left: Change(work_left=share_left)
        ),
        because=f"one vectorised call replaces {units.percent(1 - left)} of the loader's work",
    )


def _remedy(run: RunContext, name: str, spot: Hotspot | None) -> str:
    if name == "default_collate":
        size = f"{run.batch_size} samples" if run.batch_size else "the samples"
        return (
            f"Torch stacks {size} one by one: let the data set return the whole batch with one indexing "
            "(`__getitems__`, or a batch sampler with batch_size=None), as ready-made tensors instead of "
            "Python numbers and lists."
        )
    what = spot.short if spot else f"`{name}`"
    return (
        f"Do the work of {what} once for every sample when the data set is built, and make the batch with "
        "one call (`torch.stack`, `pad_sequence`, one indexing) instead of a Python loop."
    )
