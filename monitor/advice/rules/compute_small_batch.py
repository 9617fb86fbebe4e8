"""The batch is so small that the fixed cost of a step outweighs the samples.

Looks at: batch size, time in parts that do not grow with the batch (optimizer, hooks, launching each
    module), data set size; how many micro-batches an update accumulates.
Why: Every step pays for launching each operation and for the optimizer update, however few samples it
    carries; t(B) = a + b·B.
Remedy: a larger batch (with the learning rate scaled), or several micro-batches as one.
Gain: k·(a + bB) / (a + bkB) for a batch k times as large, in samples per second.
"""

from __future__ import annotations

from math import inf

from monitor.advice.context.run import FIXED_PHASES, RunContext
from monitor.advice.evidence import edits, frameworks, hot_lines
from monitor.advice.evidence.compute_cost import arithmetic_seconds, compute_change, overhead_seconds
from monitor.advice.prediction.gain import Bounds, ratio
from monitor.advice.prediction.step_model import Change
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.finding import Effect

DOUBT = Bounds(low=2.0, likely=1.0, high=0.6)
"""Factors on what grows with the batch. Judgement."""
FETCH_SECONDS, COLLATE_SECONDS, SAMPLE_SECONDS = 10e-6, 30e-6, 3e-6
"""What fetching and collating cost for a batch of any size, and the minimum per sample. An estimate for the
machine the benchmarks ran on."""
DATA_GROWS = 0.6
"""Share of loading that grows with the batch if the loader was not timed inside. Judgement."""
OWN_FIXED, OWN_MOST, OWN_SECONDS = 0.2, 0.95, 5e-4
"""User code that does not grow with the batch: this share of the named fixed parts plus this many seconds,
but at most this share of it. Judgement."""
LOADING_FIXED = 0.9
"""Share of the loader's own overhead that does not grow with the batch."""
OVERHEAD_MOST = 0.9
"""At most this share of both passes is launching: some of it is always arithmetic."""
LAUNCH_MOST = 40.0
"""At most so many operations a module, forward and backward. Judgement, and generous: what is beyond is no
launching."""
WEIGHTS_READ, SLOWEST_MEMORY = 4.0, 4e9
"""Weights and gradients are read and written about so often a step, at no fewer bytes a second. Judgement."""
WANTED_FIXED = 0.2
"""Share of the step that may be fixed: the suggested batch aims for it."""
LEAST_MICRO_BATCHES = 4.0
"""Fewer passes an update may be passes of different kinds. Judgement."""
MERGED = Bounds(low=0.6, likely=0.9, high=1.0)
"""Share of the other micro-batches' launching that is saved by taking all as one. Judgement."""
PLAYING = "rollout"
"""Where an agent makes the samples it learns from: a larger batch needs as many more of them."""
MOST_FACTOR, MOST_BATCH, LEAST_EPOCH = 64, 128, 8
"""Limits of a suggestion: multiple of the batch, samples, and steps an epoch must still have."""


@rule("compute.small_batch", "Small batch", settings=("loader.batch_size",))
def check(run: RunContext) -> Advice | None:
    return _micro_batches(run) or _batch(run)


def _micro_batches(run: RunContext) -> Advice | None:
    """An update of many passes, each mostly launching: taken as one, they are the same update."""
    many, repeated = run.micro_batches, any(spot.repeats for spot in run.hotspots)
    if many < LEAST_MICRO_BATCHES or repeated or run.period is None or run.has_cuda:
        return None
    seconds = run.seconds("forward") + run.seconds("backward")
    launching = min(many * overhead_seconds(run), OVERHEAD_MOST * seconds)
    if launching < run.policy.fixed_share * run.period:
        return None
    gone = launching * (1.0 - 1.0 / many) / seconds
    return Advice(
        title=f"Micro-batches are too small: {units.whole(many)} passes an update, of which about "
        f"{units.percent(launching / run.period)} of the step is launching operations",
        remedy="Take the micro-batches of an update as one, or as few as memory allows: larger ones, "
        "and fewer of them to accumulate." + frameworks.setting(run, "accumulation"),
        effect=_effect(run),
        price="memory for the activations of all samples of an update",
        evidence={
            "micro_batches": many,
            "fixed_share": launching / run.period,
            "fixed_seconds": launching,
            "step_seconds": run.period,
        },
        gain=MERGED.of(lambda part: compute_change(run, 1.0 - part * gone)),
        share=launching / run.period,
        because=f"each of {units.whole(many)} passes launches every operation",
    )


def _effect(run: RunContext) -> Effect:
    """Layers that look at the batch as a whole see another one; dropout draws other numbers."""
    layers = run.setting("model", "layers")
    kinds = [str(one) for one in layers] if isinstance(layers, list) else []
    if not kinds or any(kind.startswith(("BatchNorm", "SyncBatchNorm")) for kind in kinds):
        return "changes_training"
    return "in_expectation" if any("Dropout" in kind for kind in kinds) else "rounding"


def _batch(run: RunContext) -> Advice | None:
    batch = run.batch_size
    if batch is None or batch > run.policy.tiny_batch or run.period is None or run.has_cuda:
        return None
    if hot_lines.never_looked_up(run):
        return None  # nobody knows whether what its own code does grows with the batch
    factor = _factor(run, batch)
    if fixed_seconds(run) < run.policy.fixed_share * run.period or factor < 2:
        return None
    fixed = max(fixed_seconds(run), run.period - sum(_growing(run).values()))
    share = fixed / run.period
    larger = batch * factor
    outcomes = DOUBT.of(lambda doubt: _grown(run, factor, doubt))
    after = run.period / ratio(run.model, outcomes.likely)
    return Advice(
        title=f"Batch of {batch} is too small: about {units.percent(share)} of each "
        f"{units.seconds(run.period)} step is fixed cost that does not depend on the samples",
        remedy=f"Raise the batch size from {batch} to {larger} (scale the learning rate with it): the same "
        f"fixed cost then carries {factor} times the samples."
        + frameworks.setting(run, "batch", batch=larger),
        change=edits.keywords(run, "loader", batch_size=str(larger)),
        knobs={"loader.batch_size": str(larger)},
        effect="changes_training",
        price="memory; the learning rate may have to follow the batch",
        evidence={
            "batch_size": batch,
            "suggested_batch_size": larger,
            "fixed_share": share,
            "fixed_seconds": fixed,
            "step_seconds": run.period,
        },
        gain=outcomes,
        share=share,
        because=f"a sample costs {units.seconds(run.period / batch)} now "
        f"and about {units.seconds(after / batch)} then",
    )


def fixed_seconds(run: RunContext) -> float:
    """Seconds per step that certainly do not grow with the batch: optimizer and side jobs as measured, the
    fixed part of loading, and launching each operation, forward and backward."""
    named = sum(run.seconds(name) for name in FIXED_PHASES)
    own = min(OWN_MOST * (run.seconds("other") + run.seconds("between")), OWN_FIXED * named + OWN_SECONDS)
    loader = run.lead.loader if run.lead else None
    fetch = loader.fetch_seconds if loader and loader.fetch_seconds is not None else run.seconds("data")
    loading = LOADING_FIXED * max(0.0, run.seconds("data") - DATA_GROWS * fetch)
    return min(run.period or 0.0, named + own + loading + _launching(run))


def _launching(run: RunContext) -> float:
    """Seconds of forward and backward that are overhead. If all layers are dense, the arithmetic follows from
    the parameters; otherwise only the number of modules says anything."""
    compute = sum(run.seconds(phase) for phase in ("forward", "backward"))
    needed = arithmetic_seconds(run)
    if needed is not None:
        return min(max(0.0, compute - needed), _most_launching(run))
    modules = run.count("model", "modules") or 0
    return min(compute * OVERHEAD_MOST, modules * 2 * run.policy.op_seconds_cpu)


def _most_launching(run: RunContext) -> float:
    """What launching and reading the weights can cost at the most. Passes that take longer compute something:
    a sample may have many rows, which the size of the batch does not tell."""
    modules, weights = (run.count("model", name) for name in ("modules", "parameter_bytes"))
    if not modules or not weights:
        return inf
    return LAUNCH_MOST * modules * run.policy.op_seconds_cpu + WEIGHTS_READ * weights / SLOWEST_MEMORY


def _factor(run: RunContext, batch: int) -> int:
    """How many times larger: until the fixed part is small, with enough steps left in an epoch."""
    variable = sum(_growing(run).values())
    fixed = max(0.0, (run.period or 0.0) - variable)
    samples = run.count("loader", "dataset_len")
    factor = 1
    while (
        factor < MOST_FACTOR
        and batch * factor < MOST_BATCH
        and fixed > WANTED_FIXED * (fixed + variable * factor)
    ):
        factor *= 2
    if samples:
        while factor > 1 and samples / (batch * factor) < LEAST_EPOCH:
            factor //= 2
    return factor


def _grown(run: RunContext, factor: int, doubt: float) -> Change:
    """A batch `factor` times as large; what grows with it is `doubt` times what the figures say."""
    grows = _growing(run)
    names = {*run.phases, "data"}
    fixed = {name: max(0.0, run.seconds(name) - doubt * grows.get(name, 0.0)) for name in names}
    return Change(batch=float(factor), fixed=fixed)


def _growing(run: RunContext) -> dict[str, float]:
    """Seconds of each phase that grow with the batch: the b·B of t(B) = a + b·B."""
    compute = run.seconds("forward") + run.seconds("backward")
    needed = arithmetic_seconds(run)
    variable = (
        max(needed, compute - _most_launching(run))
        if needed is not None
        else max((1.0 - OVERHEAD_MOST) * compute, compute - overhead_seconds(run))
    )
    left = min(1.0, variable / compute) if compute > 0 else 0.0
    passes = {phase: left * run.seconds(phase) for phase in ("forward", "backward")}
    return {"data": _loading(run), PLAYING: run.seconds(PLAYING)} | passes


def _loading(run: RunContext) -> float:
    """Seconds of loading that grow with the batch: the samples, without the base cost of a batch."""
    loader = run.lead.loader if run.lead else None
    if loader is None or loader.fetch_seconds is None:
        return DATA_GROWS * run.seconds("data")
    samples = max(0.0, loader.fetch_seconds - FETCH_SECONDS)
    samples += max(0.0, (loader.collate_seconds or 0.0) - COLLATE_SECONDS)
    return min(run.seconds("data"), max(samples, SAMPLE_SECONDS * (run.batch_size or 1)))
