"""A Python loop does what one tensor operation could do.

Looks at: a user line in forward, loss or loop that runs many times per step and takes much of it.
Why: Every tensor operation costs microseconds of overhead whatever its size; hundreds of tiny ones in a
    Python loop cost more than one large one.
Remedy: replace the loop with one batched operation (a fused RNN instead of a cell per time step,
    broadcasting, `torch.vmap`; gradients of one sample after the other by `vmap` of `torch.func.grad`).
Gain: most of the loop's time, depending on how often it runs.
"""

from __future__ import annotations

from dataclasses import replace
from os.path import basename

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.compute_cost import arithmetic_seconds, model_seconds
from monitor.advice.prediction.gain import Bounds, Outcomes
from monitor.advice.prediction.step_model import Change, Saving, scaled
from monitor.advice.rule import Advice, rule
from monitor.model import units

PHASES = ("forward", "other", "between")
PLAYING = "rollout"
"""Where an agent plays. Its moves follow one another, so there only a loop whose rounds need no earlier one
counts, as over environments side by side."""
INNER_SAVED = Bounds(low=0.6, likely=0.85, high=0.97)
"""Share that is saved of a loop inside one that stays, as over environments within moves or tags within
words: 1 - 1 / n of n rounds, of which there are 3 to 30 or so. Judgement; of environments' own moves, tried
by hand in NumPy: 0.59 for 4 of them, 0.88 for 16, 0.96 for 64."""
LEAST_CALLS = 16
"""Judgement: with fewer calls per step it is not a loop worth batching."""
LONGEST_CALL = 300e-6
"""Seconds per call: beyond this the call is work, not overhead."""
RECORDED = 0.3
"""A backward of at least this share of the loop's time includes the loop's operations."""
MOST_COMPUTING = 0.1
"""Share of such a loop that arithmetic may take: beyond it, rounds cost what they compute. Judgement."""
CELLS = ("LSTMCell", "GRUCell", "RNNCell")
"""Layers that process one time step; torch has a version of each for a whole sequence."""
OTHERWISE = ("shuffle", "process", "network", "hash", "sort", "log", "file", "save", "plot", "sleep", "gc")
"""Jobs of a line that no batched operation can replace."""
UNSEEN = 0.03
"""Share of a phase that sampling may have attributed to the wrong line. On a device, where launches and waits
look alike, it may be all of it."""


FUSED_SAVED = Bounds(low=0.85 * 0.78, likely=0.78, high=0.9)
"""Share of a loop over modules that is saved if one fused module takes the whole sequence. Judgement."""
GRU_SAVED = Bounds(low=0.0, likely=0.2, high=0.4)
"""The same for `GRUCell` on a CPU, where `nn.GRU` goes cell by cell itself: measured between 0.7 and 1.7
times as fast as the loop, for 12 to 80 time steps."""
LEFT_CALLS = 12.0
"""A loop of n operations becomes about this many: 12 / (n + 12) of it remains. Judgement."""
LEAST_PART, MOST_SAVED = 0.93, 0.99
"""The lowest saving relative to the likely one; and the largest saving of the whole loop."""
FEWER = 0.5
"""What remains of gradients taken at once, at the least, relative to the likely remainder. Judgement."""


@rule(
    "compute.python_loop", "Python loop", suppresses=("compute.user_code", "compute.small_batch"), bonus=0.2
)
def check(run: RunContext) -> Advice | None:
    found = hot_lines.blocks(run, *PHASES)
    found += [*_together(run, PLAYING), *(spot for spot in _together(run, *PHASES) if spot.over_operations)]
    found = [spot for spot in found if _loops(run, spot)] + _gradients(run)
    spot = max(found, key=run.hot_seconds, default=None)
    if spot is None or run.period is None:
        return None
    calls, cost = spot.calls or 0.0, run.hot_seconds(spot)
    share = sum(saving.seconds for saving in _job(run, spot, cost).savings) / run.period
    if share < _least(run, spot):
        return None
    job = _job(run, spot, max(cost, run.seconds(spot.phase) - _beside(run, spot)))
    gone = _gone(run, spot, calls)
    undone = f", {units.percent(share)} with its backward" if share > cost / run.period else ""
    unseen = UNSEEN if run.lanes is None else 1.0
    most = _job(run, spot, min(1.0, spot.share + unseen) * run.seconds(spot.phase))
    return Advice(
        title=f"Python loop: {spot.text} makes {units.whole(calls)} calls a step, {units.seconds(cost)} "
        f"({units.percent(cost / run.period)}{undone})",
        remedy=f"{_replace(spot)} by one batched operation over all it goes through{_instead(run, spot)}."
        f"{_in_turn(run, spot)}",
        effect="in_expectation" if spot.phase == PLAYING or _draws(run, spot) else "rounding",
        avoid="Leaving out rounds of the loop: each of them is part of the result.",
        evidence={"calls_per_step": calls, "loop_share": share, **hot_lines.evidence(run, spot)},
        gain=Outcomes(
            low=scaled(job, gone.low), likely=scaled(job, gone.likely), high=scaled(most, gone.high)
        ),
        share=share if run.lanes is None else None,
        because=f"{units.whole(calls)} small operations become a few large ones",
    )


def _least(run: RunContext, spot: Hotspot) -> float:
    """Share of the step from which a loop is worth saying; one that records no gradients is like other code
    of the user's, wherever it stands."""
    return run.policy.user_code_share if spot.detached or spot.no_grad else run.policy.loop_share


def _together(run: RunContext, *phases: str) -> list[Hotspot]:
    """Loops whose rounds do not need one another: the heaviest line of each, with the share of all lines and
    the most calls of one."""
    groups: dict[tuple[str, str, int], list[Hotspot]] = {}
    for spot in run.hotspots:
        if spot.phase in phases and spot.batchable:
            groups.setdefault((spot.phase, *spot.batchable), []).append(spot)
    return [
        replace(
            max(lines, key=lambda spot: spot.share),
            share=min(1.0, sum(spot.share for spot in lines)),
            calls=max(spot.calls or 0.0 for spot in lines) or None,
            in_turn=False,  # the moves around it may be, but not its own rounds
        )
        for lines in groups.values()
    ]


def _gradients(run: RunContext) -> list[Hotspot]:
    """Loops that take the gradients of one sample after the other, of a model so small that a round is mostly
    the fixed cost of its operations."""
    passes = arithmetic_seconds(run)
    found = [spot for spot in _together(run, *PHASES) if spot.derives and (spot.calls or 0.0) >= LEAST_CALLS]
    if passes is None or run.has_cuda:
        return []
    batch = run.batch_size or 1
    computing = [passes * max(1.0, (spot.calls or 0.0) / batch) for spot in found]
    return [
        spot
        for spot, seconds in zip(found, computing, strict=True)
        if seconds <= MOST_COMPUTING * run.hot_seconds(spot)
    ]


def _gone(run: RunContext, spot: Hotspot, calls: float) -> Bounds:
    """Share of the loop's time that is saved."""
    if spot.phase == PLAYING or spot.within_turns:
        return INNER_SAVED
    if _over_modules(spot) or _over_cells(run, spot):
        return GRU_SAVED if _cells(run) == {"GRUCell"} and not run.has_cuda else FUSED_SAVED
    likely = 1.0 - 1.0 / (1.0 + calls / run.micro_batches / LEFT_CALLS)
    most = 1.0 - (1.0 - likely) * FEWER if spot.derives else max(likely, MOST_SAVED)
    return Bounds(low=LEAST_PART * likely, likely=likely, high=most)


def _over_modules(spot: Hotspot) -> bool:
    """Whether its rounds call modules. A loop over operations may be in the `forward` of one."""
    return spot.kind == "module" and not spot.over_operations


def _cells(run: RunContext) -> set[str]:
    """Kinds of layers in the model that take one time step."""
    layers = run.setting("model", "layers")
    return set(CELLS) & set(map(str, layers)) if isinstance(layers, list) else set()


def _over_cells(run: RunContext, spot: Hotspot) -> bool:
    """A loop in the forward pass of a model with such layers goes over time steps."""
    return spot.phase == "forward" and bool(_cells(run))


def _replace(spot: Hotspot) -> str:
    """Which loop: the one that is known, around a line, or somewhere in a function."""
    if spot.batchable:
        file, line = spot.batchable
        return f"Replace the loop at {basename(file)}:{line}"
    if not spot.line:
        return f"Replace the loop in {spot.short}{_called(spot)}"
    return f"Replace the loop around {spot.place}{_called(spot)}"


def _called(spot: Hotspot) -> str:
    """Where the loop itself is, if the line is in a function that the loop calls."""
    return f" (called at {spot.call.place})" if spot.call and _over_modules(spot) else ""


def _instead(run: RunContext, spot: Hotspot) -> str:
    """What torch offers for the most common loops."""
    if spot.phase == PLAYING and _asks_model(run, spot):
        return " (one call of the model for all of them)"
    if spot.phase == PLAYING:
        return " (the states of all environments in arrays, a row for each)"
    if _over_cells(run, spot):
        return " (`nn.LSTM` / `nn.GRU` take a whole sequence in one call)"
    if spot.derives:
        return " (`torch.func.vmap` of `torch.func.grad` takes all gradients at once)"
    if _over_modules(spot):
        return ""
    return " (broadcasting, `torch.cdist`, indexing with a mask, `torch.vmap`)"


def _asks_model(run: RunContext, spot: Hotspot) -> bool:
    """Whether a model is called in the rounds of its loop; else they are the environments' own work."""
    return any(
        one.kind == "module" and one.phase == spot.phase and one.batchable == spot.batchable
        for one in run.hotspots
    )


def _in_turn(run: RunContext, spot: Hotspot) -> str:
    """What to do if rounds cannot be batched, where nobody knows; a recurrent layer has its own answer."""
    if _over_cells(run, spot) or spot.phase == PLAYING or spot.derives or spot.batchable:
        return ""
    return (
        " If each round needs the one before it, as the moves of an agent do: go through several in "
        "parallel, or compute what is learnt from all rounds in one pass afterwards."
    )


def _draws(run: RunContext, spot: Hotspot) -> bool:
    """Whether the function draws at random, itself or in one it calls: a batched operation draws in another
    order."""
    beside = (one for one in run.hotspots if one.random and one.phase == spot.phase)
    around = {name for one in beside for name in one.functions}
    return spot.function != "<module>" and spot.functions[0] in around


def _loops(run: RunContext, spot: Hotspot) -> bool:
    """Many short calls from one place, for each batch. A stack of layers is also a loop, but calls each layer
    once: there are as many modules as calls."""
    calls = (spot.calls or 0.0) / run.micro_batches
    cost = run.hot_seconds(spot) / run.micro_batches
    if calls < LEAST_CALLS or cost / calls > LONGEST_CALL or spot.job in OTHERWISE:
        return False
    if spot.once or spot.in_turn or spot.derives:
        return False  # no loop, one whose rounds can only be done one after the other, or backward passes
    return spot.kind != "module" or calls > 2 * (run.count("model", "modules") or 0)


def _beside(run: RunContext, spot: Hotspot) -> float:
    """Upper bound on the phase's seconds without the loop: the user's other lines, and the model itself
    judged by its size. What sampling shows of a pass next to a long loop is that pass with cold caches."""
    others = sum(
        one.share
        for one in run.hotspots
        if one.phase == spot.phase
        and one.function != spot.function
        and not (spot.batchable and one.batchable == spot.batchable)
        and not hot_lines.passes(run, one)
    )
    passes = model_seconds(run) if spot.phase != PLAYING else None
    return run.seconds(spot.phase) * others + 2.0 * passes if passes is not None else float("inf")


def _job(run: RunContext, spot: Hotspot, cost: float) -> Change:
    """What the loop costs, plus its share of backward: every operation is repeated there, if it was recorded
    (a backward much shorter than the loop does not contain it). A loop beside the forward pass, such as an
    update by hand, has at most its part of all that can have been recorded; one whose results carry no
    gradient has none."""
    savings = [Saving(spot.phase, cost, spot.place)]
    backward = run.seconds("backward")
    recorded = sum(run.seconds(phase) for phase in {spot.phase, *run.forward_phases} - {"backward"})
    learns = spot.phase not in ("between", PLAYING) and not (spot.no_grad or spot.detached)
    if learns and recorded > 0 and backward >= RECORDED * cost:
        savings.append(Saving("backward", cost / recorded * backward, spot.place))
    return Change(savings=tuple(savings))
