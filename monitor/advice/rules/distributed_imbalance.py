"""The ranks take turns at being the slowest.

Looks at: spread of the ranks' step work: p95 relative to p50 on every rank, samples per rank.
Why: If a different rank is slow in each step (uneven sequence lengths, uneven batches), all of them pay for
    the slowest every time.
Remedy: bucket by length, use even batches, or batch dynamically by tokens.
Gain: half of the spread.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Outcomes
from monitor.advice.prediction.step_model import saved
from monitor.advice.rule import Advice, rule
from monitor.model import units


@rule("distributed.imbalance", "Uneven ranks", suppresses=("distributed.collective_wait",))
def check(run: RunContext) -> Advice | None:
    ranks = [rank for rank in run.run.ranks if rank.samples and rank.steps]
    if len(ranks) < 2 or run.period is None:
        return None
    rates = [rank.samples / rank.steps for rank in ranks]
    most, least = max(rates), min(rates)
    if most < run.policy.straggler_ratio * least:
        return None
    heavy = next(rank.rank for rank, rate in zip(ranks, rates, strict=True) if rate == most)
    mean = sum(rates) / len(rates)
    cost = (1.0 - mean / most) * (run.seconds("forward") + run.seconds("backward") + run.seconds("data"))
    return Advice(
        title=f"Uneven ranks: rank {heavy} gets {units.number(most)} samples a step, another only "
        f"{units.number(least)}",
        remedy="Give every rank the same number of samples (DistributedSampler with drop_last), or balance "
        "by length.",
        effect="in_expectation",
        evidence={"most_samples": most, "least_samples": least, "rank": heavy, "ranks": len(ranks)},
        gain=Outcomes(saved("*", cost, "straggler")),
        because=f"the common load is {units.percent(mean / most)} of the heaviest",
    )
