"""The figures of a ladder as numbers, as a table, and as a picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.benchmarks.trainers.ladders import Ladder
from tests.benchmarks.trainers.measure import Subject, median


def figures(ladder: Ladder, small: list[Subject], large: list[Subject], difference: float) -> dict[str, Any]:
    """Rates and ratios; `met` is whether the ratios asked for were reached."""
    result: dict[str, Any] = {
        "recipe": ladder.recipe.name,
        "command": f"python -m tests.benchmarks.trainers {ladder.recipe.name}",
        "date": time.strftime("%Y-%m-%d"),
        "claim": ladder.claim,
        "sizes": {"small": ladder.small, "large": ladder.large},
        "largest_loss_difference": difference,
        "small": _rows(small),
        "large": _rows(large),
    }
    result["goals"] = _goals(ladder, result)
    result["met"] = all(goal["ratio"] >= goal["target"] for goal in result["goals"])
    return result


def _rows(subjects: list[Subject]) -> list[dict[str, Any]]:
    naive = subjects[0]
    rows = []
    for subject in subjects:
        step, data = median(subject.step_seconds), median(subject.data_seconds)
        naive_step, naive_data = median(naive.step_seconds), median(naive.data_seconds)
        rows.append(
            {
                "label": subject.row.label,
                "seed": subject.row.seed,
                "same_losses": subject.row.compare,
                "samples_per_second": step and round(1 / step, 1),
                "ratio": step and naive_step and round(naive_step / step, 2),
                "data_samples_per_second": data and round(1 / data, 1),
                "data_ratio": data and naive_data and round(naive_data / data, 2),
            }
        )
    return rows


def _goals(ladder: Ladder, result: dict[str, Any]) -> list[dict[str, Any]]:
    by_label = {row["label"]: row for row in result["small"]}
    best = by_label["best: everything"]
    key = "data_ratio" if ladder.recipe.name == "sequence" else "ratio"
    what = "data path" if key == "data_ratio" else "end to end"
    goals = [{"what": f"naive → best, {what}", "ratio": best[key], "target": ladder.target}]
    for label, (_, target) in ladder.twins.items():
        ratio = best["samples_per_second"] / by_label[label]["samples_per_second"]
        goals.append({"what": f"{label} → best, end to end", "ratio": round(ratio, 2), "target": target})
    for size in ("small", "large"):
        rows = {row["label"]: row for row in result[size]}
        ratio = (
            rows["best: everything"]["samples_per_second"]
            / rows["document: all of them"]["samples_per_second"]
        )
        goals.append({"what": f"document → best, {size} model", "ratio": round(ratio, 2), "target": 1.0})
    return goals


def markdown(ladder: Ladder, result: dict[str, Any]) -> str:
    """The table for docs/benchmarks."""
    name = ladder.recipe.name
    lines = [
        f"# {name}: naive → document → best",
        "",
        f"`{result['command']}` on {result['date']}, CPU, 1 torch thread, interleaved medians, "
        f"{result['seconds']} s. Losses of all rows equal the naive ones within "
        f"{result['largest_loss_difference']:.1e} (rounding).",
        "",
        f"The document claims: {ladder.claim}.",
        "",
        f"| row | seed | data path, samples/s | × | end to end {_size(ladder.small)}, samples/s | × |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in result["small"]:
        label = row["label"] if row["same_losses"] else f"{row['label']} (other work, other losses)"
        cells = (row["data_samples_per_second"], row["data_ratio"], row["samples_per_second"], row["ratio"])
        lines.append(f"| {label} | {row['seed']} | {' | '.join(_number(cell) for cell in cells)} |")
    for text, seed in result["not_measured"]:
        lines.append(f"| {text} | {seed} | not measured here | | not measured here | |")
    lines += [
        "",
        f"Larger model {_size(ladder.large)}, end to end:",
        "",
        "| row | samples/s | × |",
        "|---|---:|---:|",
    ]
    for row in result["large"]:
        lines.append(f"| {row['label']} | {_number(row['samples_per_second'])} | {_number(row['ratio'])} |")
    lines += ["", "| asked for | least | measured |", "|---|---:|---:|"]
    lines += [f"| {goal['what']} | ×{goal['target']} | ×{goal['ratio']} |" for goal in result["goals"]]
    return "\n".join([*lines, "", f"![ladder](trainers_{name}.png)", ""])


def _size(options: dict[str, Any]) -> str:
    return "(" + ", ".join(f"{key} {value}" for key, value in options.items()) + ")"


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def picture(ladder: Ladder, result: dict[str, Any], path: Path) -> None:
    """Horizontal bars, naive at the top; data path beside end to end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = [row for row in result["small"] if row["same_losses"]][::-1]
    labels = [row["label"] for row in rows]
    figure, axes = plt.subplots(1, 2, figsize=(12, 0.36 * len(rows) + 1.6), sharey=True)
    for axis, key, title in zip(axes, ("ratio", "data_ratio"), ("end to end", "data path only"), strict=True):
        values = [row[key] or 0 for row in rows]
        colours = ["#2a9d5c" if label.startswith("best") else "#4a7ab5" for label in labels]
        bars = axis.barh(labels, values, color=colours)
        axis.bar_label(bars, [f"×{value:.2f}" for value in values], padding=3, fontsize=8)
        axis.set_title(f"{title}, times the naive rate", fontsize=10)
        axis.axvline(1, color="grey", linewidth=0.8)
        axis.set_xscale("log")
        axis.margins(x=0.18)
    figure.suptitle(f"{ladder.recipe.name} {_size(ladder.small)} on a CPU, one thread", fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
