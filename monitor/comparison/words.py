"""The result of a comparison, in a sentence."""

from __future__ import annotations

from monitor.comparison.compare_runs import Comparison
from monitor.comparison.realised import Realised
from monitor.model.units import gain, gain_range, small_percent


def verdict(found: Comparison) -> str:
    """One sentence, without its full stop."""
    if found.speedup is None:
        return "no verdict: one of the runs has too few steps"
    change = f"{measured(found)} in {found.unit}, noise ±{small_percent(found.noise_floor)}"
    if any(one.kind == "parameters" for one in found.differences):
        change += ", but the two trained different models"
    words = {
        "faster": f"B is faster: {change}",
        "slower": f"B is slower: {change}",
        "same": f"no difference beyond noise: {change}",
        "unsure": f"not certain: {change}; longer runs would tell",
    }
    return words[found.verdict]


def measured(found: Comparison) -> str:
    """The speed-up with its interval, where there is one."""
    if found.speedup is None or found.low is None or found.high is None:
        return gain(found.speedup)
    return gain_range(found.low, found.speedup, found.high)


def fate(one: Realised) -> str:
    """What became of a prediction, as a clause."""
    if one.realised is None:
        return f"no longer seen: {one.reason}"
    judged = "" if one.inside is None else (" inside" if one.inside else " outside")
    return f"{gain(one.realised)}{judged}{' (its share)' if one.shared else ''}"
