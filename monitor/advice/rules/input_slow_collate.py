"""Putting the samples of a batch together takes longer than making them.

Looks at: time in `collate_fn` per batch against fetching.
Why: A collate that loops in Python over samples or elements (padding, converting lists) is paid for every
    batch; it is usually one vectorised call.
Remedy: return tensors from `__getitem__` and use `torch.stack` / `pad_sequence`, or build the batch with
    one indexing.
Gain: the loader's work without most of the collate.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change


@rule(
    "input.slow_collate",
    suppresses=("input.bound", "input.no_workers", "input.too_few_workers", "input.slow_getitem"),
    bonus=0.3,
)
def check(run: RunContext) -> Advice | None:
    share = loading.part_share(run, "collate")
    loader = run.lead.loader if run.lead else None
    if share is None or loader is None or share < run.policy.dominant_share or not loading.starved(run):
        return None
    name = run.setting("loader", "collate") or "collate_fn"
    if name == "default_collate" and (
        run.workers or (loader.collate_seconds or 0.0) < max(2e-4, 20e-6 * (run.batch_size or 1))
    ):
        return None
    spot = loading.hot_part(run, "collate")
    where = f", most of it in {spot.words}" if spot else ""
    left = max(0.05, 1.0 - 0.9 * share)
    return Advice(
        title=f"Slow collate: `{name}` takes {seconds(loader.collate_seconds)} a batch, "
        f"{percent(share)} of loading{where}",
        remedy=_remedy(run, name, spot),
        change=_diff(run, name, spot),
        evidence={
            "collate_seconds": loader.collate_seconds,
            "collate_share_of_loader": share,
            "data_share": loading.data_share(run),
            "collate": name,
            "hot_line": spot.place if spot else None,
        },
        what=Change(work_left=left),
        low=Change(work_left=min(1.0, left + 0.15)),
        high=Change(work_left=left * 0.6),
        because=f"{percent(1 - left)} of the loader's work is a collate that one vectorised call replaces",
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


def _diff(run: RunContext, name: str, spot: Hotspot | None) -> str:
    if name == "default_collate":
        return (
            "+ def __getitems__(self, indices):\n+     return self.x[indices], self.y[indices]\n"
            "- DataLoader(dataset, …)\n+ DataLoader(dataset, …, collate_fn=lambda batch: batch)"
        )
    heavy = spot.code if spot and spot.code else f"Python loop over {run.batch_size or 'the'} samples"
    return (
        f"  def {name}(samples):\n-     {heavy}\n"
        "+     return pad_sequence([x for x, _ in samples]), torch.tensor([y for _, y in samples])"
    )
