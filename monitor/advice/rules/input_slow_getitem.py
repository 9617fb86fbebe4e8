"""Work done again for every sample dominates the loader: precompute or cache it.

Looks at: time inside `__getitem__` and the user line it goes to, the share of the step waiting for data,
    whether the sample is drawn at random.
Why: What `__getitem__` computes is computed again every epoch; done once when the data set is built it
    costs nothing per step, and no number of workers can match that. Random augmentation cannot be kept, but
    sample by sample in Python it costs many times what it costs for a whole batch.
Remedy: move the hot line (a scaler, a parser, a decoder) out of `__getitem__` into `__init__`, or keep
    its result; draw augmentation for a whole batch with tensor operations.
Gain: the loader's work without the hot line (augmentation: with half of it), overlap with compute taken
    into account.
"""

from __future__ import annotations

from monitor.advice import loading
from monitor.advice.context import SAMPLE_MAKERS, Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change

LOOKUP_SECONDS = 5e-6
"""What a `__getitem__` costs that only indexes."""


@rule(
    "input.slow_getitem", suppresses=("input.bound", "input.cpu_saturated", "compute.small_batch"), bonus=0.2
)
def check(run: RunContext) -> Advice | None:
    if not loading.starved(run) or loading.waits(run):
        return None
    drawn = loading.random_samples(run)
    if drawn and run.workers == 0 and loading.best_workers(run)[0]:
        return None  # workers are the simpler remedy, and that rule names the line as well
    fetch = loading.part_share(run, "fetch")
    spot = loading.hot_fetch(run)
    light = loading.library_samples(run) or (spot is None and (loading.getitem_seconds(run) or 0.0) < 20e-6)
    if light and loading.data_share(run) < run.policy.dominant_share:
        return None
    if (fetch is None and spot is None) or (fetch is not None and fetch < run.policy.dominant_share):
        return None
    left = _left(run, fetch if fetch is not None else 1.0, _own_share(run) * (0.55 if drawn else 1.0))
    cost, workers = loading.getitem_seconds(run), run.workers
    with_workers = f" with {workers} worker{'s'[: workers > 1]}" if workers else ""
    return Advice(
        title=f"{_head(drawn)}: {loading.sample_words(run)}; "
        f"{percent(loading.data_share(run))} of the step waits for it{with_workers}",
        remedy=_batched(spot) if drawn else _remedy(run, spot),
        change=_batched_diff(spot) if drawn else _diff(run, spot),
        evidence={
            "getitem_seconds": cost,
            "fetch_share_of_loader": fetch,
            "data_share": loading.data_share(run),
            "num_workers": workers,
            "hot_line": spot.place if spot else None,
            "hot_function": spot.function if spot else None,
            "hot_share": spot.share if spot else None,
            "random": drawn,
        },
        what=Change(work_left=left),
        low=Change(work_left=min(1.0, left + 0.15)),
        high=Change(work_left=max(0.02, left * 0.6)),
        because=f"loader work falls from {seconds(run.model.work)} to about "
        f"{seconds(run.model.work * left)} a batch",
    )


def _head(drawn: bool) -> str:
    return "Augmentation sample by sample" if drawn else "Per-sample work"


def _own_share(run: RunContext) -> float:
    """Share of fetching in the user's own code, all lines of it."""
    phase = "fetch" if run.hot("fetch") else "data"
    own = sum(spot.share for spot in run.hotspots if spot.phase == phase and spot.function != "<module>")
    return min(1.0, own) if own >= 0.3 else 0.85


def _left(run: RunContext, fetch: float, own: float) -> float:
    """Share of the loader's work left when samples are ready-made: looking one up, and collating."""
    batch, work = run.batch_size or 1, run.model.work
    floor = LOOKUP_SECONDS * batch / work if work > 0 else 0.0
    return min(1.0, max(0.03, floor, 1.0 - fetch * 0.95 * own))


def _remedy(run: RunContext, spot: Hotspot | None) -> str:
    what = f"the work of {spot.short}" if spot else "the work in `__getitem__`"
    count = run.count("loader", "dataset_len")
    once = f"once for all {count:,} samples" if count else "once for all samples"
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


def _batched_diff(spot: Hotspot | None) -> str:
    call = spot.function.rpartition(".")[2] if spot and spot.in_data_set else "augment"
    place = f"  # {spot.place}, once a sample" if spot else ""
    return f"- x = {call}(x){place}\n+ batch = {call}_batch(batch)   # once a batch, vectorised"


def _diff(run: RunContext, spot: Hotspot | None) -> str:
    call = spot.function.rpartition(".")[2] if spot and spot.function else "prepare"
    if spot and spot.code and call in SAMPLE_MAKERS and not spot.is_loop:
        target = spot.code.partition(" = ")[0] if " = " in spot.code else "sample"
        return (
            f"  def __init__(self, …):\n+     self.ready = …   # once for all samples: {spot.code}\n"
            f"  def {call}(self, i):\n-     {spot.code}   # {spot.place}\n+     {target} = self.ready[i]"
        )
    call = "prepare" if call in SAMPLE_MAKERS else call
    place = f"  # {spot.place}" if spot else ""
    if run.setting("loader", "iterable") is True:
        return f"+ ready = [{call}(x) for x in source]   # once\n- yield {call}(x){place}\n+ yield from ready"
    return (
        f"  def __init__(self, …):\n+     self.ready = [{call}(x) for x in self.samples]   # once\n"
        f"  def __getitem__(self, i):\n-     x = {call}(self.samples[i]){place}\n+     x = self.ready[i]"
    )
