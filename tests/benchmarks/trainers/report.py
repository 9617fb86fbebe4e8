"""The figures of a ladder as numbers, as tables, and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.benchmarks.trainers import left
from tests.benchmarks.trainers.ladders import BEST, NAIVE, SETTLED_FOR_ALL, Ladder, not_measured

Figures = dict[str, Any]
COLOURS = ["#57b586", "#c2c9d1", "#8fbf9f", "#2a9d5c", "#4a7ab5", "#9aa5b1"]
"""Of the rows from the last to the first."""
LATER = "not measured with this code yet"


def figures(ladder: Ladder, kinds: dict[str, Figures]) -> Figures:
    """Everything that was measured; `met` is whether the ratios asked for were reached."""
    goals = [goal for kind, found in kinds.items() for goal in _goals(ladder, kind, found)]
    for found in kinds.values():
        rows = {row["label"]: row for row in found["default"]["rows"]}
        if "left" in found["default"]:
            found["default"]["left_facts"] = left.facts(found["default"], rows[BEST], rows[NAIVE])
    return {
        "recipe": ladder.name,
        "command": f"python -m tests.benchmarks.trainers {ladder.name}",
        "date": max(part["date"] for found in kinds.values() for part in found.values()),
        "load_before": max(part["load_before"] for found in kinds.values() for part in found.values()),
        "cpu": next(iter(kinds.values()))["default"]["machine"]["cpu"],
        "cpu_flags": _cpu_flags(),
        "claim": ladder.claim,
        "settled_later": [*ladder.settled_later, *SETTLED_FOR_ALL],
        "kinds": kinds,
        "goals": goals,
        "met": all(goal["met"] for goal in goals),
        "not_measured": not_measured(ladder),
    }


def _goals(ladder: Ladder, kind: str, found: Figures) -> list[Figures]:
    part = found["default"]
    rows = {row["label"]: row for row in part["rows"]}
    best, naive = rows[BEST], rows[NAIVE]
    step, data = 1 / naive["samples_per_second"], 1 / naive["data_samples_per_second"]
    work = part["arithmetic"]["operations_a_sample"] / part["arithmetic"]["operations_a_second"]
    low, ratio, high = part["over_document"]
    return [
        {
            "what": f"naive → best, default model and data, {kind}",
            "kind": kind,
            "least": ladder.goal,
            "ratio": best["ratio"],
            "interval": best["interval"],
            "met": best["ratio"] >= ladder.goal,
            "limit_without_data": round(step / max(1e-12, step - data), 2),
            "limit_of_arithmetic": round(step / work, 2),
        },
        {
            "what": f"document → best, {kind}",
            "least": 1.0,
            "ratio": ratio,
            "interval": [low, high],
            "met": high >= 1.0,  # best may be the document's list: then the ratio is 1 but for noise
        },
    ]


def _cpu_flags() -> list[str]:
    """The vector instructions of this CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    flags = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    return sorted(flag for flag in flags if flag.startswith(("avx", "fma", "amx", "f16c")))


def markdown(ladder: Ladder, result: Figures) -> str:
    """The page for docs/benchmarks."""
    lines = [
        f"# {ladder.name}: naive → document → best",
        "",
        f"`{result['command']}` on {result['date']}, CPU, 1 torch thread, interleaved rounds, "
        f"{result['seconds']:.0f} s, load at most {result['load_before']} before a part. CPU: "
        f"{result['cpu']} ({', '.join(result['cpu_flags'])}).",
        "",
        f"The document claims: {ladder.claim}.",
        "",
        *_older(result),
        *_headline(result),
        *_asked_for(result),
        *_phases(result),
        *left.lines(result),
        *_compiled(result),
        *_single_rows(ladder, result),
        "## Settled after a result was seen",
        "",
        *[f"- {text}" for text in result["settled_later"]],
        "",
        f"![ladder](trainers_{ladder.name}.png)",
        "",
    ]
    return "\n".join(lines)


def _older(result: Figures) -> list[str]:
    """Parts that an earlier state of the code was measured with."""
    parts = [f"{name} ({date})" for name, date in result.get("older", {}).items()]
    return [f"Measured with earlier code: {', '.join(parts)}.", ""] if parts else []


def _headline(result: Figures) -> list[str]:
    lines = ["## Default model and data, end to end", ""]
    lines += ["| rung | " + " | ".join(f"{kind}, samples/s | ×" for kind in result["kinds"]) + " |"]
    lines += ["|---|" + "---:|---:|" * len(result["kinds"])]
    per_kind = [found["default"]["rows"] for found in result["kinds"].values()]
    for rows in zip(*per_kind, strict=True):
        cells = [f"{_number(row['samples_per_second'])} | {_ratio(row)}" for row in rows]
        lines.append(f"| {rows[0]['label']} | {' | '.join(cells)} |")
    for kind, found in result["kinds"].items():
        part = found["default"]
        lines += ["", f"{kind}: on in best: {', '.join(part['on_in_best'])}; largest difference of a loss "
                      f"from the naive run {part['largest_loss_difference']:.1e} (rounding)."]  # fmt: skip
        if "all_cores" in part:
            low, ratio, high = part["all_cores"]
            lines[-1] += f" With all cores for both, naive → best is ×{ratio:.2f} ({low:.2f}–{high:.2f})."
    return [*lines, ""]


def _asked_for(result: Figures) -> list[str]:
    lines = ["| asked for | least | measured | interval | reached | free loading | matrix-product speed |"]
    lines += ["|---|---:|---:|---|---|---:|---:|"]
    for goal in result["goals"]:
        cells = [f"×{goal['least']}", f"×{goal['ratio']:.2f}", "{:.2f}–{:.2f}".format(*goal["interval"])]
        cells += ["yes" if goal["met"] else "no"]
        limits = (goal.get(name) for name in ("limit_without_data", "limit_of_arithmetic"))
        cells += [f"×{limit}" if limit else "" for limit in limits]
        lines.append(f"| {goal['what']} | {' | '.join(cells)} |")
    notes = (
        "The last columns are limits: the naive step without its data path, which no loader can exceed; and "
    )
    notes += "the step's multiplications at the speed of a large float32 product, which no kernel can exceed "
    notes += "that does all of them."
    return [*lines, "", notes, ""]


def _phases(result: Figures) -> list[str]:
    lines = [
        "Where the time of a step goes (default model):",
        "",
        "| rung | kind | shares |",
        "|---|---|---|",
    ]
    for kind, found in result["kinds"].items():
        for label, shares in found["default"]["phases"].items():
            parts = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share >= 0.01)
            lines.append(f"| {label} | {kind} | {parts} |")
    return [*lines, ""]


def _compiled(result: Figures) -> list[str]:
    """torch.compile on a CPU: its gain per step, and what is paid for it first."""
    lines = ["torch.compile over best (default model; off unless asked for on a CPU):", ""]
    lines += ["| kind | a step | interval | compiling | pays after |", "|---|---:|---|---:|---:|"]
    for kind, found in result["kinds"].items():
        part = found.get("compile")
        if part is None:
            lines.append(f"| {kind} | {LATER} | | | |")
            continue
        steps = "never" if part["steps_to_pay"] is None else f"{part['steps_to_pay']:,} steps"
        cells = [f"×{part['ratio']:.2f}", _interval(part), f"{part['compile_seconds']:.0f} s", steps]
        if not part["in_effect"]:
            cells = [part["said"], "", "", ""]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return [*lines, ""]


def _single_rows(ladder: Ladder, result: Figures) -> list[str]:
    lines: list[str] = []
    for kind, found in result["kinds"].items():
        lines += [f"## Single optimizations, small model {_size(ladder.small)}, {kind}", ""]
        part = found.get("small")
        if part is None:
            lines += [f"{LATER}.", ""]
            continue
        lines += ["| row | seed | data path, samples/s | × | end to end, samples/s | × | interval |"]
        lines += ["|---|---|---:|---:|---:|---:|---|"]
        for row in part["rows"]:
            cells = [_number(row["data_samples_per_second"]), _number(row["data_ratio"])]
            cells += [_number(row["samples_per_second"]), _ratio(row), _interval(row)]
            lines.append(f"| {row['label']} | {row['seed']} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["| not measured here | seed |", "|---|---|"]
    lines += [f"| {text} | {seed} |" for text, seed in result["not_measured"]]
    return [*lines, ""]


def _ratio(row: Figures) -> str:
    return f"{row['ratio']:.2f}"


def _interval(row: Figures) -> str:
    low, high = row["interval"]
    text = f"{low:.2f}–{high:.2f}"
    return f"{text}: no effect seen" if low <= 1 <= high and row.get("label") != NAIVE else text


def _size(options: dict[str, Any]) -> str:
    return "(" + ", ".join(f"{key} {value}" for key, value in options.items()) + ")"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def picture(ladder: Ladder, result: Figures, path: Path) -> None:
    """Horizontal bars with their intervals: the three rungs at default size, both kinds of CPU."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(result["kinds"]), figsize=(12, 3.2), sharey=True)
    for axis, (kind, found) in zip(axes, result["kinds"].items(), strict=True):
        rows = found["default"]["rows"][::-1]
        values = [row["ratio"] for row in rows]
        errors = [[v - row["interval"][0] for v, row in zip(values, rows, strict=True)],
                  [row["interval"][1] - v for v, row in zip(values, rows, strict=True)]]  # fmt: skip
        labels = [row["label"].partition(":")[0].partition(" (")[0] for row in rows]
        bars = axis.barh(labels, values, xerr=errors, color=COLOURS[-len(rows) :])
        axis.bar_label(bars, [f"×{value:.2f}" for value in values], padding=6, fontsize=8)
        axis.set_title(f"{kind}: times the naive rate", fontsize=10)
        axis.axvline(1, color="grey", linewidth=0.8)
        axis.margins(x=0.18)
    title = f"{ladder.name}, default model and data, one CPU thread unless said otherwise"
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
