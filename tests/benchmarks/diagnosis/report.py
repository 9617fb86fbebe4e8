"""Figures over all cases, as JSON and as a page."""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.diagnosis.measure import Result

DOCS = Path(__file__).parents[3] / "docs" / "benchmarks"
COMMAND = "python -m tests.benchmarks diagnosis"
HEAD = (
    "| script | cause | found first | predicted | realised | TraceML |",
    "|---|---|---|---|---|---|",
)


def figures(results: list[Result]) -> dict[str, Any]:
    """Accuracy, false alarms, prediction quality, and the peer on the same scripts. The held-out
    scripts, which nothing was tuned on, are reported apart as well."""
    healthy = [result for result in results if not result.expected]
    peers = [result.peer_points for result in results if result.expected and result.peer_points is not None]
    known = [result for result in results if not result.held_out]
    return {
        "healthy": len(healthy),
        "false_alarms": sum(bool(result.alarms) for result in healthy),
        **_quality(results),
        "development": _quality(known),
        "held_out": _quality([result for result in results if result.held_out]),
        "peer_points": sum(peers) if peers else None,
        "peer_of": len(peers),
    }


def _quality(results: list[Result]) -> dict[str, Any]:
    """How often the cause is named, and how good the predictions are, over one set of scripts."""
    sick = [result for result in results if result.expected]
    judged = [result for result in sick if result.inside is not None]
    return {
        "causes": len(sick),
        "top1": _share([result.top1 for result in sick]),
        "top3": _share([result.top3 for result in sick]),
        "predictions": len(judged),
        "realised_inside_range": _share([bool(result.inside) for result in judged]),
        "median_error": _median([abs(result.error) for result in judged if result.error is not None]),
        "median_width": _median([result.width for result in judged if result.width is not None]),
    }


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def write(results: list[Result], name: str = "diagnosis", note: str = "") -> dict[str, Any]:
    """docs/benchmarks/<name>.json and .md; `note` says what was special about the run."""
    DOCS.mkdir(parents=True, exist_ok=True)
    summary = figures(results)
    date = time.strftime("%Y-%m-%d")
    rows = [dataclasses.asdict(result) for result in results]
    document = {"command": COMMAND, "date": date, "note": note, "figures": summary, "cases": rows}
    (DOCS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (DOCS / f"{name}.md").write_text(page(results, summary, date, note))
    return summary


def page(results: list[Result], summary: dict[str, Any], date: str, note: str = "") -> str:
    lines = [
        "# Diagnosis: does it name the cause, and does the gain come true?",
        "",
        f"`{COMMAND}`, {date}. Real CPU training scripts, one injected cause each, run unchanged under "
        "`gpumon run`;",
        "the same script with its remedy (`--fixed`) gives the realised gain: seconds a sample of the steady",
        "steps, stalls spread over them (the whole run where compilation is the cause). Where steps were",
        "unsteady both were run twice, and the faster run of each counts. Held out: scripts that were frozen",
        "with the model before their first run; what was changed since is in docs/advice.md.",
        *([note] if note else []),
        "",
        *_table(summary),
    ]
    if summary["peer_points"] is not None:
        lines.append(
            f"| TraceML on the same scripts (1 = cause named, ½ = phase named) | "
            f"{summary['peer_points']:.1f} of {summary['peer_of']} | | | |"
        )
    for title, held_out in (("Development", False), ("Held out", True)):
        chosen = [result for result in results if result.held_out is held_out]
        if chosen:
            lines += ["", f"## {title}", "", *HEAD, *map(_row, chosen)]
    return "\n".join(lines) + "\n"


def _table(summary: dict[str, Any]) -> list[str]:
    """The figures of all scripts, and of each set by itself."""
    sets = [summary, summary["development"], summary["held_out"]]

    def row(name: str, cells: list[str], goal: str = "") -> str:
        return f"| {name} | {' | '.join(cells)} | {goal} |"

    return [
        "| figure | all | development | held out | goal |",
        "|---|---|---|---|---|",
        row("scripts with a cause", [str(one["causes"]) for one in sets], "≥ 24"),
        row("cause named first", [_percent(one["top1"]) for one in sets], "≥ 90 %"),
        row("cause among the first three", [_percent(one["top3"]) for one in sets]),
        row(
            "realised gain inside the predicted range",
            [f"{_percent(one['realised_inside_range'])} of {one['predictions']}" for one in sets],
            "≥ 80 %",
        ),
        row("median error of the likely gain", [_percent(one["median_error"]) for one in sets], "≤ 25 %"),
        row("median width of the range, high / low", [_factor(one["median_width"]) for one in sets], "≤ 2.5"),
        row("healthy scripts", [str(summary["healthy"]), "", ""], "≥ 5"),
        row("false alarms on healthy runs", [str(summary["false_alarms"]), "", ""], "0"),
    ]


def _factor(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f}"


def _row(result: Result) -> str:
    mark = "✓" if result.top1 else ("(✓)" if result.top3 else "✗")
    predicted = result.predicted
    shown = (
        f"×{predicted['likely']:.2f} ({predicted['low']:.2f}–{predicted['high']:.2f})" if predicted else "—"
    )
    realised = f"×{result.realised:.2f}" if result.realised else "—"
    first = result.findings[0] if result.findings else "nothing"
    peer = result.peer.replace("|", "/") or "—"
    return (
        f"| {result.script} | {result.cause or 'healthy'} | {mark} {first} | {shown} | {realised} | {peer} |"
    )


def _percent(value: float | None) -> str:
    return "—" if value is None else f"{value * 100:.0f} %"


def write_gpu(results: dict[str, dict[str, Any]], name: str = "diagnosis-gpu") -> None:
    """The GPU-side cases: docs/benchmarks/<name>.json and .md."""
    document = {"command": COMMAND, "date": time.strftime("%Y-%m-%d"), "cases": results}
    (DOCS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    lines = [
        "# GPU-side causes, with the NVML stand-in",
        "",
        f"`{COMMAND}`, {time.strftime('%Y-%m-%d')}. No GPU here: a steerable `libnvidia-ml.so.1` gives the "
        "readings.",
        "",
        "| cause | expected | found |",
        "|---|---|---|",
    ]
    for cause, entry in results.items():
        found = ", ".join(id for id, severity, _ in entry["found"] if severity != "hint") or "nothing"
        lines.append(
            f"| {cause} | {entry['expected'] or 'nothing'} | {'✓' if entry['named'] else '✗'} {found} |"
        )
    (DOCS / f"{name}.md").write_text("\n".join(lines) + "\n")
