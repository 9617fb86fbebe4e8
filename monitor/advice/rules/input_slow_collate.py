"""Putting the samples of a batch together takes longer than making them.

Looks at: time in `collate_fn` per batch relative to fetching; whether it draws at random.
Why: A collate that loops in Python over samples or elements (padding, converting lists) is paid for every
    batch; it is usually one vectorised call. What it draws (neighbours, negatives, masks) has to be drawn for
    every batch, but not sample by sample.
Remedy: return tensors from `__getitem__` and use `torch.stack` / `pad_sequence`, or build the batch with
    a single indexing operation; draw for the whole batch at once.
Gain: the loader's work without most of the collate. Of drawing, the fixed cost of its operations; where that
    is little, nothing is said, nor where workers can draw while the model computes.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import batching, loading
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
    drawn = loading.random_batches(run)
    if drawn and (
        (run.workers == 0 and loading.best_workers(run)[0]) or not batching.collate_worthwhile(run)
    ):
        return None
    spot = loading.hot_part(run, "collate")
    where = f", most of it in {spot.text}" if spot else ""
    left = _left(run, share, drawn)
    return Advice(
        title=f"Slow collate: `{name}` takes {units.seconds(cost)} a batch, "
        f"{units.percent(share)} of loading{where}",
        remedy=_drawn_at_once(name, spot) if drawn else _remedy(run, name, spot),
        effect="in_expectation" if drawn else "identical",
        avoid="Keeping batches that are drawn at random: the model would always see the same draw."
        if drawn
        else "",
        evidence={
            "collate_seconds": loader.collate_seconds,
            "collate_share_of_loader": share,
            "data_share": loading.data_share(run),
            "collate": name,
            "hot_line": spot.place if spot else None,
            "random": drawn,
        },
        gain=left.of(lambda share_left: Change(work_left=share_left)),
        because=f"one vectorised call replaces {units.percent(1 - left.likely)} of the loader's work",
    )


def _left(run: RunContext, share: float, drawn: bool) -> Bounds:
    """Share of the loader's work that remains."""
    left = max(LEAST_LEFT, 1.0 - SAVED * share)
    around = Bounds(low=min(1.0, left + DOUBT_MORE), likely=left, high=DOUBT_LESS * left)
    if not drawn:
        return around
    removed = batching.removable_of_collate(run)
    return Bounds(*(max(one, 1.0 - most) for one, most in zip(around, removed, strict=True)))


def _drawn_at_once(name: str, spot: Hotspot | None) -> str:
    what = spot.short if spot else f"`{name}`"
    return (
        f"Do the work of {what} for the whole batch at once with tensor operations; keep what is not drawn "
        "at random ready to use."
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
