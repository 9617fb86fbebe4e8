"""What the runs add up to: means with their error, and the table in docs/benchmarks/."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.price.catalog import Program

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "docs" / "benchmarks"
ROWS = ROOT / "out" / "price.json"
"""What is measured so far, program by program."""
ALLOWED_SECONDS, ALLOWED_SHARE, MOST_SHARE = 0.5, 0.01, 0.03
"""The goals: a run costs at most 1 % + 0.5 CPU-s, and no program more than 3 %."""
OWN_SECONDS, OWN_SHARE = 0.3, 0.005
"""Of `gpumon run` alone: at most 0.3 CPU-s to start, half a percent of a core while it watches."""
Pairs = list[dict[str, dict[str, Any]]]
"""A bare and a watched run each, side by side."""
Figures = dict[str, Pairs]


class Results:
    """Every pair of runs, by program and tool. A tool that a program does not run under has an empty list."""

    def __init__(self, pairs: dict[str, Figures] | None = None) -> None:
        self.pairs = pairs or {}

    @staticmethod
    def load() -> Results:
        """What earlier calls have measured, or what is on the page."""
        if ROWS.exists():
            return Results(json.loads(ROWS.read_text()))
        page = REPORT / "price.json"
        return Results(json.loads(page.read_text())["pairs"] if page.exists() else {})

    def save(self) -> None:
        ROWS.parent.mkdir(exist_ok=True)
        ROWS.write_text(json.dumps(self.pairs))

    def add(self, program: str, tool: str, figures: dict[str, Any] | None) -> None:
        pairs = self.pairs.setdefault(program, {}).setdefault(tool, [])
        if figures is not None:
            pairs.append(figures)

    def left(self, programs: list[Program], tools: Sequence[str]) -> list[Program]:
        """Programs that still have to be run with these tools; all of them anew when none is left."""
        left = [one for one in programs if not set(tools) <= set(self.of(one.name))]
        if left:
            return left
        for found in self.pairs.values():
            for tool in tools:
                found.pop(tool, None)
        return programs

    def of(self, program: str) -> Figures:
        return self.pairs.get(program, {})


def mean(pairs: Pairs, which: str, key: str) -> float:
    return statistics.fmean(pair[which][key] for pair in pairs)


def added(pairs: Pairs, key: str) -> tuple[float, float]:
    """(how much more than bare, its standard error)."""
    values = [pair["watched"][key] - pair["bare"][key] for pair in pairs]
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return statistics.fmean(values), error


def line(program: str, found: Figures) -> str:
    """One program, while the benchmark runs."""
    parts = [f"{program:18}"]
    for tool, pairs in found.items():
        if not pairs:
            parts.append(f"does not run under {tool}")
            continue
        cpu, wall = mean(pairs, "bare", "cpu"), mean(pairs, "bare", "wall")
        (more, error), (longer, wall_error) = added(pairs, "cpu"), added(pairs, "wall")
        parts.append(
            f"bare {cpu:6.2f} CPU-s {wall:6.2f} s; {tool} {more:+.2f}±{error:.2f} CPU-s ({more / cpu:+.1%}),"
            f" {longer:+.2f}±{wall_error:.2f} s ({longer / wall:+.1%}),"
            f" {added(pairs, 'switches')[0]:+,.0f} switches"
        )
    return " | ".join(parts)


def write(results: Results) -> None:
    report = {
        "command": "python -m tests.benchmarks.price",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "pairs": results.pairs,
    }
    (REPORT / "price.json").write_text(json.dumps(report, indent=1) + "\n")
    (REPORT / "price.md").write_text(page(report, results))


def page(report: dict[str, Any], results: Results) -> str:
    tools = sorted({tool for found in results.pairs.values() for tool in found})
    heads = "".join(f" {tool}: CPU-s | {tool}: wall |" for tool in tools)
    rows = [row(name, found, tools) for name, found in results.pairs.items() if found.get("gpumon")]
    return "\n".join(
        [
            "# The whole price of watching",
            "",
            f"`{report['command']}`, then `… --peers`; {report['date']}, {report['machine']}, "
            f"load {report['load']} at the end.",
            "",
            "CPU seconds are those of all processes of a run together, from the kernel: the program, its",
            "loader workers, `gpumon run` with its report; for the peers likewise. A cell says how much",
            "more than the bare run beside it, ± the standard error. The two runs of a pair go at the same",
            "time, a core each (torch with one thread), and change cores with every pair; one pair for each",
            "peer. `device_…` run on the modelled `cuda` device of tests/device, with an event at every mark",
            "and a window of kernels.",
            "",
            "Until 2026-11-18 runs were made one after the other, on all cores; its",
            "[table](price-in-turn.md) is kept. The two bare runs of a program differed by 6 % there in the",
            "middle, by 10 to 32 % on three. After the first round side by side, which is in this file's",
            "history, recording of loader workers got a budget, three programs of 17 s were made longer,",
            "and glibc keeps freed memory in bare and watched runs: without that six short runs of `gnn` had",
            "between 387,000 and 584,000 page faults, as the layout of the heap happened to be.",
            "",
            f"| program | pairs | bare CPU-s | bare wall s |{heads} goal met |",
            f"|---|---|---|---|{'---|---|' * len(tools)}---|",
            *rows,
            "",
            f"Goal: at most {ALLOWED_SHARE:.0%} + {ALLOWED_SECONDS} CPU-s a run, and no program above "
            f"{MOST_SHARE:.0%}. “within error” is a cost above the goal by less than its standard error.",
            "",
            *itself(results),
            "",
        ]
    )


def itself(results: Results) -> list[str]:
    """What the watching process alone has used, and what our recorder says about itself."""
    runs = [pair["watched"] for found in results.pairs.values() for pair in found.get("gpumon", [])]
    shares = [one["own_share"] for one in runs if one["own_share"] is not None]
    accounts = [one["overhead_ratio"] for one in runs if one.get("overhead_ratio") is not None]
    if not shares or not accounts:
        return []
    share = statistics.fmean(shares)
    rest = statistics.fmean(one["own_cpu"] - share * one["wall"] for one in runs)
    return [
        f"`gpumon run` itself: {share:.2%} of a core while it watches (goal: {OWN_SHARE:.1%}) and "
        f"{rest:.2f} CPU-s to start and to report (goal: {OWN_SECONDS}), means over all {len(runs)} runs.",
        f"What the recorder says about itself (`overhead_ratio`): mean {statistics.fmean(accounts):.2%}, "
        f"at most {max(accounts):.2%}.",
    ]


def row(name: str, found: Figures, tools: list[str]) -> str:
    pairs = found["gpumon"]
    cells = [name, str(len(pairs)), *(f"{mean(pairs, 'bare', key):.1f}" for key in ("cpu", "wall"))]
    for tool in tools:
        for key in ("cpu", "wall"):
            cells.append(cell(found[tool], key) if found.get(tool) else "does not run")
    cells.append(verdict(pairs))
    return f"| {' | '.join(cells)} |"


def cell(pairs: Pairs, key: str) -> str:
    more, error = added(pairs, key)
    spread = f" ± {error:.2f}" if error else ""
    return f"{more:+.2f}{spread} ({more / mean(pairs, 'bare', key):+.1%})"


def verdict(pairs: Pairs) -> str:
    more, error = added(pairs, "cpu")
    bare = mean(pairs, "bare", "cpu")
    allowed = min(ALLOWED_SHARE * bare + ALLOWED_SECONDS, MOST_SHARE * bare)
    if more <= allowed:
        return "yes"
    return "within error" if more - error <= allowed else "no"
