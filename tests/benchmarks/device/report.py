"""The rows and their figures, as JSON and as a page."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks.device.figures import figures
from tests.benchmarks.device.judge import Row
from tests.benchmarks.device.measure import cores

DOCS = Path(__file__).parents[3] / "docs" / "benchmarks"
COMMAND = "python -m tests.benchmarks diagnosis-device"
LAUNCH_BOUND = "launch-bound: cause first, and not more than the truth"
EXPLAINED = (
    "Ordinary training scripts on the modelled `cuda` device of `tests/device`, which knows when it was idle",
    "and why. **It is a stand-in: no time here is one of a GPU.** Idle: share of the steady steps, by the",
    "device's own account and by the report of `gpumon run`, in the same run. Gain: seconds a step of the",
    "script and of its hand-made fix (`--fixed`), both without gpumon. First look: script, accepted findings",
    "and speeds were frozen before gpumon first saw them; what it said then is kept, right or wrong.",
)


def write(
    rows: list[Row], first: list[Row], note: str = "", name: str = "diagnosis_device"
) -> dict[str, Any]:
    """docs/benchmarks/<name>.json and .md; `first` is what was said about each script at first look, `note`
    what was special about this run."""
    summary = figures(rows)
    date = time.strftime("%Y-%m-%d")
    cases = [dataclasses.asdict(row) for row in rows]
    document = {"command": COMMAND, "date": date, "note": note, "figures": summary, "cases": cases}
    document["first_looks"] = figures(first)
    (DOCS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (DOCS / f"{name}.md").write_text(page(rows, first, date, note))
    return summary


def page(rows: list[Row], first: list[Row], date: str, note: str = "") -> str:
    lines = [
        "# Diagnosis on a device: are the idle time, the cause and the gain true?",
        "",
        *([f"**{note}**", ""] if note else []),
        f"`{COMMAND}`, {date}, {cores()} cores.",
        *EXPLAINED,
        "",
        *_table(figures(rows), figures(first)),
        "",
        "## Scripts with a cause",
        "",
        "| script | cause | idle: true, by cause | reported | found first | gain: true | predicted | look |",
        "|---|---|---|---|---|---|---|---|",
        *(_sick(row) for row in rows if row.expected),
        "",
        "## Healthy scripts",
        "",
        "| script | idle: true | reported | found first | promised | look |",
        "|---|---|---|---|---|---|",
        *(_healthy(row) for row in rows if not row.expected),
    ]
    return "\n".join(lines) + "\n"


def _table(summary: dict[str, Any], first: dict[str, Any]) -> list[str]:
    return [
        f"| figure | this run | at first look, {first['scripts']} scripts | goal |",
        "|---|---|---|---|",
        *(f"| {name} | {show(summary)} | {show(first)} | {goal} |" for name, show, goal in _FIGURES),
    ]


_FIGURES: tuple[tuple[str, Callable[[dict[str, Any]], str], str], ...] = (
    ("scripts with a cause, healthy", lambda all: f"{all['sick']}, {all['healthy']}", "≥ 28, ≥ 12"),
    (
        f"idle share within 5 points ({LAUNCH_BOUND})",
        lambda all: percent(all["idle_right"]),
        "≥ 90 %",
    ),
    ("median error of the idle share", lambda all: _points(all["median_idle_error"]), ""),
    ("cause named first", lambda all: percent(all["first"]), "≥ 90 %"),
    ("cause among the first three", lambda all: percent(all["top3"]), ""),
    (
        "true gain inside the predicted range, where one was given",
        lambda all: f"{percent(all['inside'])} of {all['predictions']}",
        "≥ 85 %",
    ),
    ("the same, of all with a cause", lambda all: percent(all["inside_of_all"]), ""),
    ("median error of the likely gain", lambda all: percent(all["median_gain_error"]), ""),
    (
        "false alarms on healthy runs",
        lambda all: f"{all['false_alarms']} of {all['healthy_judged']}",
        "0",
    ),
    (
        "step under gpumon against without, median",
        lambda all: _number(all["median_slowdown"], 3),
        "",
    ),
    ("load average, median", lambda all: _number(all["median_load"]), ""),
    (
        "skipped, failed, disturbed by a busy machine (†)",
        lambda all: f"{all['skipped']}, {all['failed']}, {len(all['disturbed'])}",
        "0, 0, 0",
    ),
)


def _sick(row: Row) -> str:
    if row.skipped or row.error:
        return f"| {row.script} | {row.cause} | {_trouble(row)} | | | | | {row.look} |"
    predicted = row.predicted
    shown = (
        f"{_mark(row.inside)} ×{predicted['likely']:.2f} ({predicted['low']:.2f}–{predicted['high']:.2f})"
        if predicted
        else "—"
    )
    cells = [row.script + _dagger(row), row.cause, f"{percent(row.idle)} {_causes(row)}"]
    cells += [
        f"{_mark(row.idle_right)} {percent(row.reported_idle)}",
        _found(row),
        _times(row.gain),
        shown,
        row.look,
    ]
    return f"| {' | '.join(cells)} |"


def _healthy(row: Row) -> str:
    if row.skipped or row.error:
        return f"| {row.script} | {_trouble(row)} | | | | {row.look} |"
    mark = "†" if row.false_alarm is None else _mark(not row.false_alarm)
    found = f"{mark} {(row.findings or ['nothing'])[0]}"
    cells = [row.script + _dagger(row), f"{percent(row.idle)} {_causes(row)}"]
    cells += [f"{_mark(row.idle_right)} {percent(row.reported_idle)}", found, _times(row.promised), row.look]
    return f"| {' | '.join(cells)} |"


def _trouble(row: Row) -> str:
    words = row.skipped or row.error.strip().splitlines()[-1]
    return words.replace("|", "/")


def _found(row: Row) -> str:
    mark = "✓" if row.first else ("(✓)" if row.top3 else "✗")
    return f"{mark} {(row.findings or ['nothing'])[0]}"


def _causes(row: Row) -> str:
    """The kinds of idle time that matter, the largest first."""
    large = sorted(row.idle_causes.items(), key=lambda entry: -entry[1])
    named = [f"{cause} {percent(share)}" for cause, share in large if share >= 0.02]
    return f"({', '.join(named)})" if named else ""


def _dagger(row: Row) -> str:
    return " †" if row.disturbed else ""


def _mark(right: bool | None) -> str:
    return "—" if right is None else ("✓" if right else "✗")


def _times(value: float | None) -> str:
    return "—" if value is None else f"×{value:.2f}"


def _number(value: float | None, digits: int = 1) -> str:
    return "—" if value is None else f"{value:.{digits}f}"


def _points(value: float | None) -> str:
    return "—" if value is None else f"{value * 100:.0f} points"


def percent(value: float | None) -> str:
    return "—" if value is None else f"{value * 100:.0f} %"
