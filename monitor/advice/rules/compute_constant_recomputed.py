"""A result that never changes is computed again in every step.

Looks at: functions in the loop or the model that returned the same arrays in all profiled steps, lines that
    build an array only from values that never change, and the time they take.
Why: A mask, a table of positions, a normalised adjacency or class weights do not depend on the batch;
    recomputing them in every step wastes all of their time.
Remedy: compute it once before the loop and keep it; in a model, `register_buffer` in `__init__`.
Gain: all of that time.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, hot_lines
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import Change, Saving
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.9, likely=0.98, high=1.0)
"""Share of the line's time that is saved: reading a stored result costs next to nothing. Judgement."""


@rule(
    "compute.constant_recomputed",
    "Constant recomputed",
    suppresses=("compute.user_code", "compute.python_loop", "compute.small_batch", "compute.state_copies"),
    bonus=0.6,
)
def check(run: RunContext) -> Advice | None:
    lines = _heaviest(run)
    if not lines or run.period is None:
        return None
    cost = hot_lines.total(run, lines)
    if cost < run.policy.phase_share * run.period:
        return None
    spot = lines[0]
    job = Change(savings=tuple(Saving(one.phase, run.hot_seconds(one), one.place) for one in lines))
    name = spot.constant or spot.text
    share = units.percent(cost / run.period)
    more = len(lines) - 1
    others = f" with {more} more line{'s'[: more > 1]} there" if more else ""
    told = (
        f"`{spot.constant}` returns the same every time"
        if spot.constant
        else f"{spot.text}{others} depends on no input"
    )
    return Advice(
        title=f"Recomputed every step: {told}, {units.seconds(cost)} a step ({share})"
        + (f", most of it in {spot.text}" if spot.constant else ""),
        remedy=_remedy(spot, name),
        change=_change(run, spot),
        effect="identical",
        price="memory for the result",
        avoid="Keeping what is drawn at random, or what the loop changes.",
        evidence={
            "constant_share": cost / run.period,
            "constant_seconds_per_step": cost,
            "constant_function": spot.constant or None,
            **hot_lines.evidence(run, spot),
        },
        gain=SAVED.part_of(job),
        because=f"{units.seconds(cost)} of {units.seconds(run.period)} a step recomputes the same result",
    )


def _heaviest(run: RunContext) -> list[Hotspot]:
    """The lines of the most expensive constant, heaviest first."""
    groups: dict[str, list[Hotspot]] = {}
    for spot in run.hotspots:
        if spot.phase not in hot_lines.PHASES_OF_LOOP:
            continue
        if (spot.constant or spot.fixed) and not spot.random:
            groups.setdefault(spot.constant or (spot.function if spot.fixed else spot.place), []).append(spot)
    best = max(groups.values(), key=lambda lines: hot_lines.total(run, lines), default=[])
    return sorted(best, key=lambda spot: -run.hot_seconds(spot))


def _called_at(spot: Hotspot) -> str:
    """Where the constant function is called, according to the stack."""
    functions = [spot.function, *(one.function for one in spot.callers)]
    places = [spot.place, *(one.place for one in spot.callers)]
    inside = [at for at, name in enumerate(functions) if name == spot.constant]
    return places[inside[-1] + 1] if inside and inside[-1] + 1 < len(places) else spot.place


def _remedy(spot: Hotspot, name: str) -> str:
    place = _called_at(spot)
    called = f", called at {place}," if place != spot.place else ""
    shown = f"`{name}`" if spot.constant else name
    return (
        f"Compute {shown}{called} once before the loop and reuse the result; inside a model keep it with "
        "`self.register_buffer(…)` in `__init__`."
    )


def _change(run: RunContext, spot: Hotspot) -> str:
    piece = run.piece(spot)
    return edits.hoisted(piece) if piece is not None and spot.constant else ""
