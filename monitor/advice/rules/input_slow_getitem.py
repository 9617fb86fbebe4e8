"""Work repeated for every sample dominates the loader: precompute or cache it.

Looks at: time inside `__getitem__` and the user line it is spent on, the share of the step waiting for data,
    whether the sample is drawn at random, or only the order of samples.
Why: What `__getitem__` computes is computed again every epoch; done once when the data set is built it costs
    nothing per step, and no number of workers can match that. Random augmentation cannot be cached, but
    sample by sample the fixed cost of each of its operations is paid for every sample, not once a batch. A
    buffer that is shuffled for every sample costs as much as it is long; drawing one of its items does not.
Remedy: move the hot line (a scaler, a parser, a decoder) out of `__getitem__` into `__init__`, or cache
    its result; augment a whole batch at once with tensor operations; draw one item instead of a new order.
Gain: the loader's work without the hot line, taking overlap with compute into account. Of augmentation, what
    a whole batch saves: the fixed cost of each operation on a sample. Where that is little, nothing is said.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import batching, loading
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units

LOOKUP_SECONDS, LIGHT_SECONDS = 5e-6, 20e-6
"""Cost of a `__getitem__` that only indexes, and the cost below which it is not called slow. An estimate."""
BATCHED_SAVED = 0.55
"""Most that is saved of random augmentation by doing it for a whole batch at once. Judgement."""
CLEAR_SHARE, OWN_UNKNOWN = 0.3, 0.85
"""From this share of fetching in the user's own code the sampled share counts; below, the second is
assumed."""
READY_SAVED = (0.95, 1.0)
"""Share of the hot code that is saved by keeping its result: likely, and at most. Judgement."""
LEAST_LEFT, DOUBT_MORE, DOUBT_LESS, MOST_GAIN_LEFT = 0.03, 0.15, 0.6, 0.02
"""Of the loader's work: the least that remains; how much more for the lowest gain; the factor for the
highest, and the least that remains then."""
SHUFFLE_SAVED = Bounds(low=0.85, likely=0.97, high=1.0)
"""Share of a shuffle that is saved by drawing one item of what it shuffles. Judgement: one of hundreds."""


@rule(
    "input.slow_getitem",
    "Slow samples",
    suppresses=("input.bound", "input.cpu_saturated", "compute.small_batch"),
    bonus=0.2,
)
def check(run: RunContext) -> Advice | None:
    if not loading.starved(run) or loading.waits(run):
        return None
    shuffles = loading.shuffled(run)
    if shuffles is not None:
        return _shuffled(run, shuffles)
    drawn = loading.random_samples(run)
    if drawn and run.workers == 0 and loading.best_workers(run)[0]:
        return None  # workers are the simpler remedy, and that rule also names the line
    fetch = loading.part_share(run, "fetch")
    spot = loading.hot_fetch(run)
    cost = loading.getitem_seconds(run)
    light = loading.resident(run) or (spot is None and (cost or 0.0) < LIGHT_SECONDS)
    if light and loading.data_share(run) < run.policy.dominant_share:
        return None
    if (fetch is None and spot is None) or (fetch is not None and fetch < run.policy.dominant_share):
        return None
    if drawn and not batching.worthwhile(run):
        return None
    left = _left(run, fetch if fetch is not None else 1.0, drawn)
    return Advice(
        title=f"{_head(drawn)}: {loading.sample_text(run)}",
        detail=_waits(run),
        remedy=_batched(spot) if drawn else _remedy(run, spot),
        effect="in_expectation" if drawn else "identical",
        price="" if drawn else "memory or disk for the samples that are kept",
        avoid="Keeping a sample that is drawn at random: the model would always see the same draw.",
        evidence={
            "getitem_seconds": cost,
            "fetch_share_of_loader": fetch,
            "data_share": loading.data_share(run),
            "num_workers": run.workers,
            "hot_line": spot.place if spot else None,
            "hot_function": spot.function if spot else None,
            "hot_share_of_loader": spot.share if spot else None,
            "random": drawn,
        },
        gain=left.of(lambda share: Change(work_left=share)),
        because=f"loader work falls from {units.seconds(run.model.work)} to about "
        f"{units.seconds(run.model.work * left.likely)} a batch",
    )


def _shuffled(run: RunContext, spot: Hotspot) -> Advice:
    work = run.model.work
    left = Bounds(*(max(LEAST_LEFT, 1.0 - saved * spot.share) for saved in SHUFFLE_SAVED))
    return Advice(
        title=f"Shuffled again for every sample: {spot.text}, {units.percent(spot.share)} of loading",
        detail=_waits(run),
        remedy=f"At {spot.place} draw one item instead of a new order of all: take the one at "
        "`random.randrange(len(…))`, and let the last, or the new one, take its place. It is as random, and "
        "costs the same however long the buffer is.",
        effect="in_expectation",
        avoid="A smaller buffer: the order would be less random.",
        evidence={
            "data_share": loading.data_share(run),
            "num_workers": run.workers,
            "hot_line": spot.place,
            "hot_function": spot.function,
            "hot_share_of_loader": spot.share,
        },
        gain=left.of(lambda share: Change(work_left=share)),
        because=f"loader work falls from {units.seconds(work)} to about {units.seconds(work * left.likely)} "
        "a batch",
    )


def _waits(run: RunContext) -> str:
    workers = run.workers
    with_workers = f" with {workers} worker{'s'[: workers > 1]}" if workers else ""
    return f"{units.percent(loading.data_share(run))} of the step waits for it{with_workers}"


def _head(drawn: bool) -> str:
    return "Augmentation sample by sample" if drawn else "Per-sample work"


def _own_share(run: RunContext) -> tuple[float, float]:
    """Share of fetching in the user's own code, over all its lines: likely, and at most. While no line is
    known (a young run's are not looked up yet), it may be all of it."""
    phase = "fetch" if run.hot("fetch") else "data"
    own = sum(spot.share for spot in run.hotspots if spot.phase == phase and spot.function != "<module>")
    return (min(1.0, own), min(1.0, own)) if own >= CLEAR_SHARE else (OWN_UNKNOWN, 1.0)


def _left(run: RunContext, fetch: float, drawn: bool) -> Bounds:
    """Share of the loader's work that remains: with ready-made samples lookup and collating, with a whole
    batch's augmentation also its arithmetic."""
    batch, work = run.batch_size or 1, run.model.work
    floor = LOOKUP_SECONDS * batch / work if work > 0 else 0.0
    part = fetch * (BATCHED_SAVED if drawn else 1.0)
    left, least = (
        min(1.0, max(LEAST_LEFT, floor, 1.0 - part * own * saved))
        for own, saved in zip(_own_share(run), READY_SAVED, strict=True)
    )
    around = Bounds(
        low=min(1.0, left + DOUBT_MORE), likely=left, high=max(MOST_GAIN_LEFT, DOUBT_LESS * least)
    )
    if not drawn:
        return around
    removed = batching.removable(run)
    return Bounds(*(max(share, 1.0 - most) for share, most in zip(around, removed, strict=True)))


def _remedy(run: RunContext, spot: Hotspot | None) -> str:
    what = f"the work of {spot.short}" if spot else "the work in `__getitem__`"
    count = run.count("loader", "dataset_len")
    once = f"once for all {units.whole(count)} samples" if count else "once for all samples"
    if run.setting("loader", "iterable") is True:
        return (
            f"Do {what} {once} before training and store the result ready to use (tensors in memory, or a "
            "memory-mapped file), so that the data set only hands it out."
        )
    return (
        f"Do {what} {once} when the data set is built (or cache its result, in memory or on disk), so that "
        "`__getitem__` only indexes; `__getitems__` can then fetch a whole batch in one go."
    )


def _batched(spot: Hotspot | None) -> str:
    what = f"the work of {spot.short}" if spot else "the augmentation in `__getitem__`"
    return (
        f"Do {what} for the whole batch at once with tensor operations (in the collate function or on the "
        "device after loading), keep only what is not random in `__getitem__`, and cache that; then share "
        "the rest among workers."
    )
