"""A result that never changes is computed again in every step.

Looks at: functions in the loop or the model that returned the same arrays in all steps looked at, lines that
    build a mask, a table or an identity, and the time they take.
Why: A mask, a table of positions, a normalised adjacency or class weights do not depend on the batch; made
    again in every step they cost the step their whole time for nothing.
Remedy: compute it once before the loop and keep it; in a model, `register_buffer` in `__init__`.
Gain: all of that time.
"""

from __future__ import annotations

import re

from monitor.advice import hotlines
from monitor.advice.context import Hotspot, RunContext
from monitor.advice.finding import percent, seconds
from monitor.advice.rule import Advice, rule
from monitor.advice.whatif import Change, Saving, scaled

BUILDERS = re.compile(
    r"\w+ ?= ?(torch|np|numpy)\.((eye|ones|zeros|arange|linspace|full)\(|tri[lu]\((torch|np)\.(ones|full)\()"
    r"(?!.*\) ?[-+*/@])"
)
"""A line that makes a table out of nothing but sizes."""


@rule(
    "compute.constant_recomputed",
    suppresses=("compute.user_code", "compute.python_loop", "compute.small_batch", "compute.state_copies"),
    bonus=0.6,
)
def check(run: RunContext) -> Advice | None:
    lines = _heaviest(run)
    if not lines or run.period is None:
        return None
    cost = hotlines.total(run, lines)
    if cost < run.policy.phase_share * run.period:
        return None
    spot = lines[0]
    what = Change(savings=tuple(Saving(one.phase, run.hot_seconds(one), one.place) for one in lines))
    name = spot.constant or spot.words
    share = percent(cost / run.period)
    more = len(lines) - 1
    others = f" with {more} more line{'s'[: more > 1]} there" if more else ""
    told = (
        f"`{spot.constant}` returns the same every time"
        if spot.constant
        else f"{spot.words}{others} depends on no input"
    )
    return Advice(
        title=f"Computed again every step: {told}, {seconds(cost)} a step ({share})"
        + (f", most of it in {spot.words}" if spot.constant else ""),
        remedy=_remedy(spot, name),
        change=_diff(spot),
        evidence={
            "constant_share": cost / run.period,
            "constant_seconds_per_step": cost,
            "constant_function": spot.constant or None,
            **hotlines.evidence(run, spot),
        },
        what=scaled(what, 0.98),
        low=scaled(what, 0.8),
        high=what,
        because=f"{seconds(cost)} of {seconds(run.period)} a step gives what was there before",
    )


def _heaviest(run: RunContext) -> list[Hotspot]:
    """The lines of the constant that costs most, the heaviest first."""
    groups: dict[str, list[Hotspot]] = {}
    for spot in run.hotspots:
        if spot.phase not in hotlines.PHASES_OF_LOOP:
            continue
        if spot.constant or spot.fixed or _builds(spot):
            groups.setdefault(spot.constant or (spot.function if spot.fixed else spot.place), []).append(spot)
    best = max(groups.values(), key=lambda lines: hotlines.total(run, lines), default=[])
    return sorted(best, key=lambda spot: -run.hot_seconds(spot))


def _builds(spot: Hotspot) -> bool:
    """The line itself builds a table, and its time is not in a module it calls."""
    return not spot.inside and not hotlines.passes(spot.code) and bool(BUILDERS.match(spot.code))


def _call(spot: Hotspot) -> tuple[str, str]:
    """(place, code) of the line that asks for the constant."""
    short = spot.constant.rpartition(".")[2]
    for caller in spot.callers:
        if short and short + "(" in caller.code:
            return caller.place, caller.code
    return spot.place, spot.code


def _remedy(spot: Hotspot, name: str) -> str:
    place, _ = _call(spot)
    called = f", called at {place}" if place != spot.place else ""
    shown = f"`{name}`" if spot.constant else name
    return (
        f"Compute {shown}{called} once before the loop and reuse the result; inside a model keep it with "
        "`self.register_buffer(…)` in `__init__`."
    )


def _diff(spot: Hotspot) -> str:
    place, code = _call(spot)
    call = _expression(code, spot.constant.rpartition(".")[2])
    if call and call != code:
        kept = f"+ kept = {call}   # once; in a model: register_buffer"
        return f"{kept}\n- {code}   # {place}\n+ {code.replace(call, 'kept')}"
    return f"- {code or spot.constant}   # {place}: move it out of the loop, into __init__ of a model"


def _expression(code: str, name: str) -> str:
    """The call of `name` in a line, with its brackets; empty when it is not there as a whole."""
    found = re.search(rf"[\w.]*\b{re.escape(name)}\(", code) if name else None
    if found is None:
        return ""
    depth = 0
    for at in range(found.end() - 1, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[found.start() : at + 1]
    return ""
