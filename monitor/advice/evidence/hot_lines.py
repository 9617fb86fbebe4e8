"""Hot lines of the user's code: which belong together, and how findings present them.

What a line does is inferred from the library function it calls and its place in the loop (`sdk/structure`),
never from the user's own names.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from monitor.advice.context.hotspot import Caller, Hotspot, callers, together
from monitor.advice.context.run import RunContext
from monitor.advice.context.work import Work
from monitor.model import units

MOSTLY = 0.5
"""More than this share of a piece's time is what it is about."""
OWN, MOSTLY_OWN = ("other", "between"), 0.5
"""Where the loop's own code is when nothing names it, and the share of the time from which it decides about
the run. Judgement."""
PHASES_OF_LOOP = ("other", "between", "forward", "log", "sync", "grad_norm")


def passes(run: RunContext, spot: Hotspot) -> bool:
    """Whether the line is (also) a pass of the step: its time is not that of other work on the same line."""
    piece = run.piece(spot)
    learns = piece is not None and (piece.grad or (piece.module and piece.needed == "yes"))
    return spot.update or learns


def doing(run: RunContext, *jobs: str, phases: Collection[str] = PHASES_OF_LOOP) -> list[Hotspot]:
    """Hot lines of the training loop that directly call a library function with one of these jobs."""
    found = [spot for spot in run.hotspots if spot.job in jobs and spot.phase in phases]
    return sorted(found, key=lambda spot: -run.hot_seconds(spot))


def blocks(run: RunContext, *phases: str) -> list[Hotspot]:
    """Pieces of the user's code, each with the share of all its lines: a function or, in
    the function that contains the loop (and in a script without one), neighbouring lines."""
    loops = _loops(run)
    groups: dict[tuple[object, ...], list[Hotspot]] = {}
    at: tuple[object, ...] = ()
    for spot in sorted(run.hotspots, key=lambda one: (one.phase, one.file, one.function, one.line)):
        if spot.phase not in phases:
            continue
        key: tuple[object, ...] = (spot.phase, spot.file, spot.function)
        if key[1:] in loops or spot.function == "<module>":
            near = at[:3] == key and not passes(run, spot) and not passes(run, groups[at][-1])
            key = at if near and spot.line - groups[at][-1].line <= 2 else (*key, spot.line)
        at = key
        groups.setdefault(key, []).append(spot)
    found = [_summed(lines) for lines in groups.values()]
    return sorted(found, key=lambda spot: -run.hot_seconds(spot))


def _loops(run: RunContext) -> set[tuple[str, str]]:
    """(file, function) of the training loop: where backward and the optimizer are called."""
    return {(spot.file, spot.function) for spot in run.hotspots if spot.phase in ("backward", "optimizer")}


def _summed(lines: list[Hotspot]) -> Hotspot:
    """A piece as one hotspot. What only samples of some line of a function say about loops (line 0) does not
    count beside lines that are known."""
    calls = max((spot.calls or 0.0 for spot in lines), default=0.0)
    sure = [spot for spot in lines if spot.line] or lines
    whole = sum(spot.share for spot in sure)
    found = together(sorted(lines, key=lambda spot: -spot.share))
    return replace(
        found,
        calls=calls or None,
        in_turn=sum(spot.share for spot in sure if spot.in_turn) > MOSTLY * whole,
        over_operations=sum(spot.share for spot in sure if spot.over_operations) > MOSTLY * whole,
        once=all(spot.once for spot in sure),
    )


def hottest(run: RunContext, piece: Work) -> Hotspot | None:
    """The heaviest hot line of a piece of work."""
    lines = [spot for spot in run.hotspots if spot.piece == (piece.file, piece.line)]
    return max(lines, key=run.hot_seconds, default=None)


def alike(run: RunContext, piece: Work) -> list[Work]:
    """This piece, and others of its phase that spend their time in the same function of the user's: what
    makes that one cheaper makes them all so."""
    function = _inner_function(run, piece)
    others = [one for one in run.work if one.phase == piece.phase and one != piece]
    return [piece, *(one for one in others if function and _inner_function(run, one) == function)]


def _inner_function(run: RunContext, piece: Work) -> tuple[str, str] | None:
    """(file, function) in which a piece spends most; None if that is where it stands itself."""
    names = (spot.function for spot in run.hotspots if (spot.file, spot.line) == piece.hot)
    name = next(names, piece.function)
    return (piece.hot[0], name) if piece.hot and name != piece.function else None


def keeping_line(run: RunContext) -> Caller | None:
    """A line of the loop that keeps something from every step: a hot one, else one the SDK found there."""
    hot = next((spot for spot in run.hotspots if ".append(" in spot.code), None)
    if hot is not None:
        return Caller(hot.function, hot.file, hot.line, hot.code)
    return next(iter(callers(run.setting("keeps"))), None)


def total(run: RunContext, spots: list[Hotspot]) -> float:
    """Seconds per step of these lines together."""
    return sum(run.hot_seconds(spot) for spot in spots)


def evidence(run: RunContext, spot: Hotspot | None) -> dict[str, object]:
    """The place in numbers and names, for a finding's evidence."""
    if spot is None:
        return {}
    return {
        "hot_line": spot.place,
        "hot_function": spot.function or None,
        "hot_code": spot.code or None,
        "hot_share_of_phase": spot.share,
        "hot_seconds_per_step": run.hot_seconds(spot),
    }


def text(run: RunContext, spot: Hotspot | Work) -> str:
    """ "`compute_metrics` (train.py:88), 4.1 ms a step (38 %)"."""
    cost = run.hot_seconds(spot)
    share = cost / run.period if run.period else 0.0
    return f"{spot.text}, {units.seconds(cost)} a step ({units.percent(share)})"


def never_looked_up(run: RunContext) -> bool:
    """Whether the run's own code takes most of the time and its lines are not known: they are looked up at
    the end, or once the run is long enough to afford it, and who is ended by a signal has no end."""
    if run.setting("sampled_steps") is not None or run.hotspots or run.device is not None:
        return False
    return sum(run.share(phase) for phase in OWN if phase not in run.forward_phases) >= MOSTLY_OWN
