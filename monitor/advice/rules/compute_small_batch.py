"""The batch is so small that the fixed cost of a step outweighs the samples.

Looks at: batch size, time in parts that do not grow with the batch (optimizer, hooks, launching each
    module), data set size.
Why: Every step pays for launching each operation and for the optimizer update, however few samples it
    carries; t(B) = a + b·B.
Remedy: a larger batch (with the learning rate scaled), or several micro-batches as one.
Gain: k·(a + bB) / (a + bkB) for a batch k times as large, in samples per second.
"""

from __future__ import annotations

from monitor.advice.context import RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving

HEAVY = {"Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell"} | {
    "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer",
}  # fmt: skip
"""Layers that use each parameter many times a sample."""


@rule("compute.small_batch")
def check(run: RunContext) -> Advice | None:
    batch = run.batch_size
    if batch is None or batch > run.policy.tiny_batch or run.period is None or run.has_cuda:
        return None
    fixed = fixed_seconds(run)
    share = fixed / run.period
    factor = _factor(run, batch, fixed)
    if share < run.policy.fixed_share or factor < 2:
        return None
    larger = batch * factor
    variable = run.period - fixed
    after = (fixed + variable * factor) / factor
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
        what=_grown(run, fixed, factor),
        low=_grown(run, fixed * 0.8, max(2, factor // 2)),
        high=_grown(run, min(0.99 * run.period, fixed + 0.6 * variable), factor),
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
    layers = run.setting("model", "layers")
    parameters = run.count("model", "parameters") or 0
    if isinstance(layers, list) and layers and not set(map(str, layers)) & HEAVY and parameters:
        needed = 6.0 * parameters * (run.batch_size or 1) / run.policy.cpu_flops
        return max(0.0, compute - needed)
    modules = run.count("model", "modules") or 0
    return min(compute * 0.9, modules * 2 * run.policy.op_seconds_cpu)


def _factor(run: RunContext, batch: int, fixed: float) -> int:
    """How many times larger: until the fixed part is small, with steps enough left in an epoch."""
    variable = max(1e-9, (run.period or 0.0) - fixed)
    samples = run.count("loader", "dataset_len")
    factor = 1
    while factor < 64 and fixed / (fixed + variable * factor) > 0.2 and batch * factor < 128:
        factor *= 2
    if samples:
        while factor > 1 and samples / (batch * factor) < 8:
            factor //= 2
    return factor


def _grown(run: RunContext, fixed: float, factor: int) -> Change:
    """A batch `factor` times as large saves the fixed cost of all but one of `factor` steps."""
    saved = min(run.period or 0.0, fixed) * (1.0 - 1.0 / factor)
    return Change(savings=(Saving("*", saved, "fixed"),))
