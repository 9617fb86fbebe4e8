"""What the runs add up to: means with their error, and the table in docs/benchmarks/."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
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
Figures = dict[str, list[dict[str, Any]]]


class Results:
    """Every run, by program and tool. A tool that a program does not run under has an empty list."""

    def __init__(self, runs: dict[str, Figures] | None = None) -> None:
        self.runs = runs or {}

    @staticmethod
    def load() -> Results:
        """What earlier calls have measured, or what is on the page."""
        if ROWS.exists():
            return Results(json.loads(ROWS.read_text()))
        page = REPORT / "price.json"
        return Results(json.loads(page.read_text())["runs"] if page.exists() else {})

    def save(self) -> None:
        ROWS.parent.mkdir(exist_ok=True)
        ROWS.write_text(json.dumps(self.runs))

    def add(self, program: str, tool: str, figures: dict[str, Any] | None) -> None:
        runs = self.runs.setdefault(program, {}).setdefault(tool, [])
        if figures is not None:
            runs.append(figures)

    def left(self, programs: list[Program], tools: list[str]) -> list[Program]:
        """Programs that still have to be run with these tools; all of them anew when none is left."""
        left = [one for one in programs if not set(tools) <= set(self.of(one.name))]
        if left:
            return left
        for found in self.runs.values():
            for tool in tools:
                found.pop(tool, None)
        return programs

    def of(self, program: str) -> Figures:
        return self.runs.get(program, {})


def mean(found: list[dict[str, Any]], key: str) -> float:
    return statistics.fmean(one[key] for one in found)


def added(found: Figures, tool: str, key: str) -> tuple[float, float]:
    """(how much more than bare, its standard error)."""
    values = [[one[key] for one in found[name]] for name in ("bare", tool)]
    error = sum(statistics.variance(one) / len(one) for one in values if len(one) > 1) ** 0.5
    return statistics.fmean(values[1]) - statistics.fmean(values[0]), error


def line(program: str, found: Figures) -> str:
    """One program, while the benchmark runs."""
    if not found.get("bare"):
        return f"{program:18} no bare run"
    cpu, wall = mean(found["bare"], "cpu"), mean(found["bare"], "wall")
    parts = [f"{program:18} bare {cpu:6.2f} CPU-s {wall:6.2f} s"]
    for tool in found:
        if tool != "bare" and found[tool]:
            more, error = added(found, tool, "cpu")
            longer, wall_error = added(found, tool, "wall")
            switches = mean(found[tool], "switches") - mean(found["bare"], "switches")
            parts.append(
                f"{tool} {more:+.2f}±{error:.2f} CPU-s ({more / cpu:+.1%}), {longer:+.2f}±{wall_error:.2f} s"
                f" ({longer / wall:+.1%}), {switches:+,.0f} switches"
            )
    return " | ".join(parts)


def write(results: Results) -> None:
    report = {
        "command": "python -m tests.benchmarks.price",
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "load": round(os.getloadavg()[0], 1),
        "runs": results.runs,
    }
    (REPORT / "price.json").write_text(json.dumps(report, indent=1) + "\n")
    (REPORT / "price.md").write_text(page(report, results))


def page(report: dict[str, Any], results: Results) -> str:
    tools = sorted({tool for found in results.runs.values() for tool in found} - {"bare"})
    heads = "".join(f" {tool}: CPU-s | {tool}: wall |" for tool in tools)
    rows = [row(name, found, tools) for name, found in results.runs.items() if found.get("bare")]
    return "\n".join(
        [
            "# The whole price of watching",
            "",
            f"`{report['command']}`, then `… --peers`; {report['date']}, {report['machine']}, "
            f"load {report['load']} at the end.",
            "",
            "CPU seconds are those of all processes of a run together, from the kernel: the program, its",
            "loader workers, `gpumon run` with its report; for the peers likewise. A cell says how much",
            "more than bare, ± its standard error. Bare and watched runs alternate (bare, watched,",
            "watched, bare); peers ran once. `device_…` run on the modelled `cuda` device of tests/device,",
            "with an event at every mark and a window of kernels.",
            "",
            f"| program | bare CPU-s | bare wall s |{heads} goal met |",
            f"|---|---|---|{'---|---|' * len(tools)}---|",
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
    runs = [one for found in results.runs.values() for one in found.get("gpumon", [])]
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
    bare = {key: mean(found["bare"], key) for key in ("cpu", "wall")}
    cells = [name, f"{bare['cpu']:.1f}", f"{bare['wall']:.1f}"]
    for tool in tools:
        for key in ("cpu", "wall"):
            cells.append(cell(found, tool, key, bare[key]) if found.get(tool) else "does not run")
    cells.append(verdict(found, bare["cpu"]))
    return f"| {' | '.join(cells)} |"


def cell(found: Figures, tool: str, key: str, bare: float) -> str:
    more, error = added(found, tool, key)
    spread = f" ± {error:.2f}" if error else ""
    return f"{more:+.2f}{spread} ({more / bare:+.1%})"


def verdict(found: Figures, bare: float) -> str:
    if not found.get("gpumon"):
        return "—"
    more, error = added(found, "gpumon", "cpu")
    allowed = min(ALLOWED_SHARE * bare + ALLOWED_SECONDS, MOST_SHARE * bare)
    if more <= allowed:
        return "yes"
    return "within error" if more - error <= allowed else "no"
