"""The batch is so small that the fixed cost of a step outweighs the samples.

Looks at: batch size, time in parts that do not grow with the batch (optimizer, hooks, launching each
    module), data set size.
Why: Every step pays for launching each operation and for the optimizer update, however few samples it
    carries; t(B) = a + b·B.
Remedy: a larger batch (with the learning rate scaled), or several micro-batches as one.
Gain: k·(a + bB) / (a + bkB) for a batch k times as large, in samples per second.
"""

from __future__ import annotations

from monitor.advice.computing import arithmetic_seconds, overhead_seconds
from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, ratio

FETCH_SECONDS, COLLATE_SECONDS, SAMPLE_SECONDS = 10e-6, 30e-6, 3e-6
"""What fetching and collating cost a batch of any size, and a sample at least."""


@rule("compute.small_batch")
def check(run: RunContext) -> Advice | None:
    batch = run.batch_size
    if batch is None or batch > run.policy.tiny_batch or run.period is None or run.has_cuda:
        return None
    fixed = fixed_seconds(run)
    share = fixed / run.period
    factor = _factor(run, batch)
    if share < run.policy.fixed_share or factor < 2:
        return None
    larger = batch * factor
    likely = _grown(run, factor, 1.0)
    after = run.period / ratio(run.model, likely)
    return Advice(
        title=f"Batch of {batch} is too small: about {percent(share)} of each {seconds(run.period)} step "
        "is fixed "
        "cost that does not depend on the samples",
        remedy=f"Raise the batch size from {batch} to {larger} (scale the learning rate with it): the same "
        "fixed "
        f"cost then carries {factor} times the samples.",
        change=f"- batch_size={batch}\n+ batch_size={larger}",
        evidence={
            "batch_size": batch,
            "suggested_batch_size": larger,
            "fixed_share": share,
            "fixed_seconds": fixed,
            "step_seconds": run.period,
        },
        what=likely,
        low=_grown(run, factor, 2.0),
        high=_grown(run, factor, 0.6),
        because=f"a sample costs {seconds(run.period / batch)} now and about {seconds(after / batch)} then",
    )


def fixed_seconds(run: RunContext) -> float:
    """Seconds a step that do not grow with the batch: optimizer and side jobs as measured, the fixed
    part of loading, and the launching of each operation, forward and backward."""
    named = sum(run.seconds(name) for name in ("optimizer", "zero_grad", "grad_norm", "log", "sync"))
    own = min(0.95 * (run.seconds("other") + run.seconds("between")), 0.2 * named + 5e-4)
    loader = run.lead.loader if run.lead else None
    fetch = loader.fetch_seconds if loader and loader.fetch_seconds is not None else run.seconds("data")
    loading = 0.9 * max(0.0, run.seconds("data") - 0.6 * fetch)
    return min(run.period or 0.0, named + own + loading + _launching(run))


def _launching(run: RunContext) -> float:
    """Seconds of forward and backward that are overhead. Where all layers are dense, the arithmetic is
    known from the parameters; else only the number of modules says something."""
    compute = sum(run.seconds(phase) for phase in ("forward", "backward"))
    needed = arithmetic_seconds(run)
    if needed is not None:
        return max(0.0, compute - needed)
    modules = run.count("model", "modules") or 0
    return min(compute * 0.9, modules * 2 * run.policy.op_seconds_cpu)


def _factor(run: RunContext, batch: int) -> int:
    """How many times larger: until the fixed part is small, with steps enough left in an epoch."""
    variable = max(1e-9, sum(_growing(run).values()))
    fixed = max(0.0, (run.period or 0.0) - variable)
    samples = run.count("loader", "dataset_len")
    factor = 1
    while factor < 64 and fixed / (fixed + variable * factor) > 0.2 and batch * factor < 128:
        factor *= 2
    if samples:
        while factor > 1 and samples / (batch * factor) < 8:
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
    variable = needed if needed is not None else max(0.1 * compute, compute - overhead_seconds(run))
    left = min(1.0, variable / compute) if compute > 0 else 0.0
    return {"data": _loading(run)} | {phase: left * run.seconds(phase) for phase in ("forward", "backward")}


def _loading(run: RunContext) -> float:
    """Seconds of loading that grow with the batch: the samples, without what a batch costs anyway."""
    loader = run.lead.loader if run.lead else None
    if loader is None or loader.fetch_seconds is None:
        return 0.6 * run.seconds("data")
    samples = max(0.0, loader.fetch_seconds - FETCH_SECONDS)
    samples += max(0.0, (loader.collate_seconds or 0.0) - COLLATE_SECONDS)
    return min(run.seconds("data"), max(samples, SAMPLE_SECONDS * (run.batch_size or 1)))
