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


def figures(results: list[Result]) -> dict[str, Any]:
    """Accuracy, false alarms, prediction quality, and the peer on the same scripts."""
    sick = [result for result in results if result.expected]
    healthy = [result for result in results if not result.expected]
    judged = [result for result in sick if result.inside is not None]
    errors = [abs(result.error) for result in judged if result.error is not None]
    peers = [result.peer_points for result in sick if result.peer_points is not None]
    return {
        "causes": len(sick),
        "healthy": len(healthy),
        "top1": _share([result.top1 for result in sick]),
        "top3": _share([result.top3 for result in sick]),
        "false_alarms": sum(bool(result.alarms) for result in healthy),
        "predictions": len(judged),
        "realised_inside_range": _share([bool(result.inside) for result in judged]),
        "median_error": statistics.median(errors) if errors else None,
        "peer_points": sum(peers) if peers else None,
        "peer_of": len(peers),
    }


def _share(values: list[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def write(results: list[Result], name: str = "diagnosis") -> dict[str, Any]:
    """docs/benchmarks/<name>.json and .md."""
    DOCS.mkdir(parents=True, exist_ok=True)
    summary = figures(results)
    date = time.strftime("%Y-%m-%d")
    rows = [dataclasses.asdict(result) for result in results]
    document = {"command": COMMAND, "date": date, "figures": summary, "cases": rows}
    (DOCS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    (DOCS / f"{name}.md").write_text(page(results, summary, date))
    return summary


def page(results: list[Result], summary: dict[str, Any], date: str) -> str:
    lines = [
        "# Diagnosis: does it name the cause, and does the gain come true?",
        "",
        f"`{COMMAND}`, {date}. Real CPU training scripts, one injected cause each, run unchanged under "
        "`gpumon run`;",
        "the same script with its remedy (`--fixed`) gives the realised gain (seconds a sample).",
        "",
        "| figure | value | goal |",
        "|---|---|---|",
        f"| causes / healthy scripts | {summary['causes']} / {summary['healthy']} | ≥ 24 / ≥ 5 |",
        f"| cause named first | {_percent(summary['top1'])} | ≥ 90 % |",
        f"| cause among the first three | {_percent(summary['top3'])} | |",
        f"| false alarms on healthy runs | {summary['false_alarms']} | 0 |",
        f"| realised gain inside the predicted range | {_percent(summary['realised_inside_range'])} "
        f"of {summary['predictions']} | ≥ 80 % |",
        f"| median of the error of the likely gain | {_percent(summary['median_error'])} | ≤ 25 % |",
    ]
    if summary["peer_points"] is not None:
        lines.append(
            f"| TraceML on the same scripts (1 = cause named, ½ = phase named) | "
            f"{summary['peer_points']:.1f} of {summary['peer_of']} | |"
        )
    lines += [
        "",
        "| script | cause | found first | predicted | realised | TraceML |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(result) for result in results]
    return "\n".join(lines) + "\n"


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
