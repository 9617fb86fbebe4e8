"""The ranks spend much of the step waiting in collectives.

Looks at: on a GPU, collective kernels while no other kernel runs; on the CPU, time in a phase named for
    communication, or backward far longer than forward explains, on every rank.
Why: While gradients are exchanged after backward, in small pieces, or over a slow link, nobody computes.
Remedy: overlap (DDP buckets, `gradient_as_bucket_view`), accumulate with `no_sync()`, compress, or check
    the link.
Gain: half of the exposed communication.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from monitor.advice.context.run import RunContext
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, saved
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.1, likely=0.5, high=1.0)
"""Share of the exposed exchange that is hidden or avoided. Judgement; never checked on GPUs here."""
BACKWARD_PER_FORWARD = 2.5
"""A backward pass without an exchange takes at most this many times its forward pass."""
NAMES = ("allreduce", "all_reduce", "collective", "comm", "communication", "sync_gradients")


@rule("distributed.collective_wait", "Waiting in collectives")
def check(run: RunContext) -> Advice | None:
    exchange = _exchange(run) if run.run.world_size >= 2 else None
    if exchange is None or run.period is None or exchange.seconds < run.policy.collective_share * run.period:
        return None
    cost = exchange.seconds
    return Advice(
        title=f"Waiting in collectives: about {units.seconds(cost)} a step "
        f"({units.percent(cost / run.period)}) on all {run.run.world_size} ranks",
        remedy="Exchange less often (`model.no_sync()` with accumulation), in larger buckets, or in bf16; "
        "check the link.",
        effect="rounding",
        evidence={"wait_seconds": cost, "wait_share": cost / run.period, "world_size": run.run.world_size},
        gain=SAVED.of(exchange.without),
        because="if half of the exchange is hidden or left out",
    )


class _Exchange(NamedTuple):
    """Seconds per step in which nobody computes, and the step without part of them."""

    seconds: float
    without: Callable[[float], Change]


def _exchange(run: RunContext) -> _Exchange | None:
    """On a GPU, host time in backward is launching and waiting: only the device sees the exchange."""
    if run.has_cuda:
        seconds, busy = run.device and run.device.exchange_seconds, run.lanes and sum(run.lanes.busy.values())
        return _Exchange(seconds, _shorter_work(seconds / busy)) if seconds and busy else None
    named = next((name for name in NAMES if run.seconds(name) > 0), None)
    if named:
        return _Exchange(run.seconds(named), _shorter_phase(named, run.seconds(named)))
    cost = run.seconds("backward") - BACKWARD_PER_FORWARD * run.seconds("forward")
    return _Exchange(cost, _shorter_phase("backward", cost))


def _shorter_work(share: float) -> Callable[[float], Change]:
    return lambda part: Change(device_left=max(0.0, 1.0 - part * share))


def _shorter_phase(phase: str, seconds: float) -> Callable[[float], Change]:
    return lambda part: saved(phase, part * seconds, "comm")
