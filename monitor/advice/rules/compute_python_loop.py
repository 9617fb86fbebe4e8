"""A Python loop does what one tensor operation could do.

Looks at: a user line in forward, loss or loop that runs many times a step and takes much of it.
Why: Every tensor operation costs microseconds of overhead whatever its size; hundreds of tiny ones in a
    Python loop cost more than one large one.
Remedy: replace the loop by one batched operation (a fused RNN instead of a cell per time step,
    broadcasting, `torch.vmap`).
Gain: most of the loop's time, by how often it runs.
"""

from __future__ import annotations

from monitor.advice import hotlines
from monitor.advice.computing import model_seconds
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving, scaled

PHASES = ("forward", "other", "between")
LEAST_CALLS = 16
LONGEST_CALL = 300e-6
"""Seconds a call: beyond that the call is work, not overhead."""
RECORDED = 0.3
"""A backward of at least this share of the loop's time undoes the loop's operations."""
UNSEEN = 0.03
"""Share of a phase that sampling may have put on the wrong line."""


@rule("compute.python_loop", suppresses=("compute.user_code", "compute.small_batch"), bonus=0.2)
def check(run: RunContext) -> Advice | None:
    found = hotlines.blocks(run, *PHASES)
    spot = max((spot for spot in found if _loops(run, spot)), key=run.hot_seconds, default=None)
    if spot is None or run.period is None or run.hot_seconds(spot) < run.policy.loop_share * run.period:
        return None
    calls, cost = spot.calls or 0.0, run.hot_seconds(spot)
    job = _job(run, spot, max(cost, run.seconds(spot.phase) - _beside(run, spot)))
    fused = spot.kind == "module"
    gone = 0.78 if fused else 1.0 - 1.0 / (1.0 + calls / 12.0)
    most = _job(run, spot, min(1.0, spot.share + UNSEEN) * run.seconds(spot.phase))
    return Advice(
        title=f"Python loop: {spot.words} makes {calls:,.0f} calls a step, {seconds(cost)} "
        f"({percent(cost / run.period)})",
        remedy=f"Replace the loop around {spot.place}{_called(spot)} by one batched operation over all it "
        f"goes through{_instead(spot)}.",
        change=f"- for …:\n-     {spot.code or '…'}\n+ # one call on the stacked tensor",
        evidence={"calls_per_step": calls, **hotlines.evidence(run, spot)},
        what=scaled(job, gone),
        low=scaled(job, gone * (0.85 if fused else 0.93)),
        high=scaled(most, 0.9 if fused else max(gone, 0.99)),
        because=f"{calls:.0f} small operations become a few large ones",
    )


def _called(spot: Hotspot) -> str:
    """Where the loop itself is, when the line stands in a function it calls."""
    return f" (called at {spot.call.place})" if spot.call and spot.kind == "module" else ""


def _instead(spot: Hotspot) -> str:
    """What torch has for the loop that people write most."""
    text = f"{spot.code} {spot.function} {spot.call.code if spot.call else ''}".lower()
    if "cell" in text or "lstm" in text or "gru" in text or "rnn" in text:
        return " (`nn.LSTM` / `nn.GRU` take a whole sequence in one call)"
    if spot.kind == "module":
        return ""
    return " (broadcasting, `torch.cdist`, indexing with a mask, `torch.vmap`)"


def _loops(run: RunContext, spot: Hotspot) -> bool:
    """Many short calls from one place. A stack of layers is a loop too, but each is called once: there
    are as many modules as calls."""
    calls = spot.calls or 0.0
    if calls < LEAST_CALLS or run.hot_seconds(spot) / calls > LONGEST_CALL or hotlines.instead(spot):
        return False
    return spot.kind != "module" or calls > 2 * (run.count("model", "modules") or 0)


def _beside(run: RunContext, spot: Hotspot) -> float:
    """Seconds the phase takes at most without the loop: other lines of the user's, and the model itself by
    its size. What sampling shows of a pass beside a long loop is the pass with everything cold."""
    others = sum(
        one.share
        for one in run.hotspots
        if one.phase == spot.phase and one.function != spot.function and not hotlines.passes(one.code)
    )
    passes = model_seconds(run)
    return run.seconds(spot.phase) * others + 2.0 * passes if passes is not None else float("inf")


def _job(run: RunContext, spot: Hotspot, cost: float) -> Change:
    """What the loop costs, and its share of backward: every operation is undone there again, if it was
    recorded (a backward much shorter than the loop knows nothing of it)."""
    savings = [Saving(spot.phase, cost, spot.place)]
    backward, phase = run.seconds("backward"), run.seconds(spot.phase)
    if spot.phase != "between" and phase > 0 and backward >= RECORDED * cost:
        savings.append(Saving("backward", cost / phase * backward, spot.place))
    return Change(savings=tuple(savings))
