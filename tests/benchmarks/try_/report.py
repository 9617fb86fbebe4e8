"""The page, from the rows there are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from monitor.experiments.spread import Ratio
from tests.benchmarks.try_.catalog import CASES
from tests.benchmarks.try_.measure import faster

LEAST_GAIN = 1.05
"""A fix that brings less is nothing to find."""
KINDS = {"script": "scripts", "library loop": "library loops", "naive twin": "naive twins"}
HEAD = """# `gpumon try` against fixes made by hand

`python -m tests.benchmarks.try_` wrote this on a shared machine with 2 cores and no GPU. Scripts and
library loops are those of the diagnosis benchmark whose fix is a knob, `by hand` is their own `--fixed`
version; the twins are the trainers' `--rung naive`, mended by hand with two loader processes. The command
as it is, by hand and under `gpumon boost` ran in turn, there and back, once or twice. `--allow-numerics` is
on, because the hand-made fixes change random numbers too where a data set draws them; the class says where.
In brackets: 95 % intervals.
"""
EARLIER = """Earlier rounds, the 18 scripts alone. The first (2026-11-18): 107 % of the hand-made gain, at
least 80 % in 18 of 18; of what `try` found, `boost` reached 72 %, at least 90 % in 9 of 18,
because it compared its settings with none for most of a short run. The second, with the seven
scripts anew that this had hit: 102 %, at least 80 % in 16 of 18 (plain_adam 70 %, many_hands
76 %); `boost` 98 %, at least 90 % in 14 of 18 (many_hands 78 %, packed_tiles 81 %, nan_hunt
86 %, nightly_refit 87 %). A soak of the daemon (about a tenth of a core) ran beside both, and
trials were repeated once at the most.
"""


def by_hand(row: dict[str, Any]) -> Ratio | None:
    return faster(row.get("costs", {}), "by hand")


def boosted(row: dict[str, Any]) -> Ratio | None:
    return faster(row.get("costs", {}), "boost")


def found(row: dict[str, Any]) -> Ratio | None:
    return Ratio(**row["ratio"]) if row.get("ratio") else None


def share_of_gain(row: dict[str, Any]) -> float | None:
    """Of the logarithm of the hand-made gain; None where that fix brings less than 5 %."""
    return share(found(row), by_hand(row))


def share_of_promise(row: dict[str, Any]) -> float | None:
    """What `boost` reached of what `try` found, of its logarithm; None where that is less than 5 %."""
    return share(boosted(row), found(row))


def share(reached: Ratio | None, goal: Ratio | None) -> float | None:
    if goal is None or goal.likely < LEAST_GAIN:
        return None
    return max(0.0, math.log(reached.likely)) / math.log(goal.likely) if reached is not None else 0.0


def falls_short(reached: Ratio | None, goal: Ratio | None) -> bool:
    """By more than the noise of the two figures."""
    return goal is not None and (reached is None or reached.high < goal.low)


def as_claimed(results: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """How many arms kept to the class of their knobs, of those whose losses can tell. A data set that draws
    random numbers draws others in a worker: that is said of this knob, and shown, not claimed otherwise."""
    allowed = {"identical": ("equal",), "rounding": ("equal", "rounding")}
    told = [
        one["losses"]["same"] in allowed[one["claimed"]]
        for one in results
        if one["claimed"] in allowed and one["losses"]["same"] != "unknown" and one["ratio"]
        and not {"loader.num_workers", "num_workers"} & set(one["settings"])
    ]  # fmt: skip
    return sum(told), len(told)


def inside(results: Iterable[dict[str, Any]]) -> tuple[int, int]:
    """Realised within the predicted range, intervals included."""
    promised = [(one["predicted"], one["ratio"]) for one in results if one["predicted"] and one["ratio"]]
    return sum(p["low"] <= r["high"] and r["low"] <= p["high"] for p, r in promised), len(promised)


def page(table: Sequence[dict[str, Any]], missing: Sequence[str] = ()) -> str:
    results = [one for row in table for one in row.get("results", [])]
    right, promised = inside(results)
    kept, told = as_claimed(results)
    lines = [
        HEAD,
        *(line for kind in KINDS for line in _summary(kind, [r for r in table if _kind(r) == kind])),
        f"- realised within the predicted range, intervals included: **{right} of {promised}**",
        "- losses as the knob's class says (equal bit for bit, or to 1e-3), workers left out, whose class",
        f"  the losses decide: **{kept} of {told}**",
        "",
        EARLIER,
        "| command | what is wrong | by hand | `gpumon try` | settings | class | share | `gpumon boost` "
        "| of what `try` found | took |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(line(row) for row in table),
        "",
        *([f"Not measured yet: {', '.join(missing)}.", ""] if missing else []),
    ]
    return "\n".join(lines)


def _kind(row: dict[str, Any]) -> str:
    return CASES[row["name"]].kind


def _summary(kind: str, table: Sequence[dict[str, Any]]) -> Iterable[str]:
    if not table:
        return
    gains = [one for row in table if (one := share_of_gain(row)) is not None]
    boosts = [one for row in table if (one := share_of_promise(row)) is not None]
    short = sum(falls_short(found(row), by_hand(row)) for row in table if share_of_gain(row) is not None)
    behind = sum(falls_short(boosted(row), found(row)) for row in table if share_of_promise(row) is not None)
    yield (
        f"- **{len(table)} {KINDS[kind]}**, {len(gains)} with a fix that brings at least 5 %: `try` found "
        f"{_percent(_mean(gains))} of the hand-made gain (of its logarithm), at least 80 % of it in "
        f"**{sum(one >= 0.8 for one in gains)} of {len(gains)}**; less by more than noise explains in "
        f"{short}."
    )
    yield (
        f"  `boost` reached {_percent(_mean(boosts))} of what `try` found, at least 90 % of it in "
        f"**{sum(one >= 0.9 for one in boosts)} of {len(boosts)}**; less by more than noise explains in "
        f"{behind}"
    )


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _gain(ratio: Ratio | None, none: str = "–") -> str:
    return none if ratio is None else f"×{ratio.likely:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


def line(row: dict[str, Any]) -> str:
    wrong = CASES[row["name"]].wrong
    if "error" in row:
        return f"| {row['name']} | {wrong} | – | failed: {row['error'][-80:]} | – | – | – | – | – | – |"
    settings = " ".join(f"`{name}={value}`" for name, value in (row["best"] or {}).items()) or "–"
    hand = by_hand(row)
    nothing = " (nothing to find)" if hand is not None and hand.likely < LEAST_GAIN else ""
    cells = (
        row["name"], wrong, _gain(hand) + nothing, _gain(found(row), "nothing clear"), settings,
        row["effect"] or "–", _percent(share_of_gain(row)), _gain(boosted(row)),
        _percent(share_of_promise(row)), f"{row['took']:.0f} s",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"
