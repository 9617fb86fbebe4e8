"""Compare two runs: before and after a change, predicted against realised."""

from __future__ import annotations

from typing import Any

from grafana import style
from grafana.dashboards import events
from grafana.dashboards.run import shares, step_heat
from grafana.layout import JOB, MACHINE, Section, Strip, frame, scope, variable
from grafana.panels import Builder, Q, bars, lines, number
from grafana.tables import Column, ask, grid

A, B = f'{MACHINE}, run="$run_a"', f'{MACHINE}, run="$run_b"'
BOTH = f'{MACHINE}, run=~"$run_a|$run_b"'
RUNS = f"label_values(gpumon_run_info{{{MACHINE}}}, run)"
RANGE = "[$__range]"
COLORS = {"A": "#8e8e8e", "B": "#37a35c"}
ABOUT = (
    "Two runs side by side, A before and B after: the four figures (throughput, step time, GPU use, GPU memory), time per "
    "step by phase, findings that went away, and the predicted speed-up against the realised one. Choose a time range that "
    "contains both. `gpumon compare` adds confidence intervals."
)


def build() -> Any:
    variables = [
        *scope(),
        variable("run_a", "Run A (before)", RUNS),
        variable("run_b", "Run B (after)", RUNS),
    ]
    sections = [
        Section("A against B", [Strip(5, _figures()), Strip(8, [(9, _verdict()), (15, _phases())])]),
        Section("Findings", [Strip(7, [(24, _findings())])]),
        Section("Where the time goes", [Strip(8, [(12, shares(A, "A: share of step time")), (12, shares(B, "B: share of step time"))])]),
        Section("Speed", [Strip(8, [(8, _throughput()), (8, step_heat(A, "A: step time")), (8, step_heat(B, "B: step time"))])]),
        Section("GPU and loss", [Strip(8, [(12, _gpu()), (12, _loss())])]),
    ]  # fmt: skip
    return frame(
        "compare",
        ABOUT,
        sections,
        variables,
        [events.run_begins(BOTH), events.run_ends(BOTH)],
        span="now-3h",
    )


def _recorded(run: str) -> str:
    """The same run in recorded figures, which cover all its machines."""
    return run.replace(MACHINE, JOB)


def _samples(run: str) -> str:
    return f"sum(avg_over_time(gpumon_run_samples_per_second{{{run}}}{RANGE}))"


def _use(run: str) -> str:
    return f"avg(avg_over_time(gpumon:run_gpu_utilization:avg{{{_recorded(run)}}}{RANGE}))"


def _step(run: str) -> str:
    return f'max(avg_over_time(gpumon_run_step_percentile_seconds{{{run}, percentile="50"}}{RANGE}))'


def _memory(run: str) -> str:
    return f"sum(max_over_time(gpumon_gpu_run_memory_bytes{{{run}}}{RANGE}))"


def _pair(title: str, about: str, unit: str, ask_for: Any, decimals: int | None = None) -> Builder:
    queries = [Q(ask_for(run), name, instant=True) for name, run in (("A", A), ("B", B))]
    return number(title, about, unit, *queries, names=True, decimals=decimals)


def _figures() -> list[tuple[int, Builder]]:
    faster = ((None, "#d6293e"), (0.98, "#8e8e8e"), (1.03, "#37a35c"))
    ratio = f"{_samples(B)} / {_samples(A)}"
    return [
        (4, number("B over A", "Throughput of B over that of A: above 1 the change helped.", "none", Q(ratio, "×", instant=True), steps=faster, decimals=2)),
        (5, _pair("Samples/s", "Mean over the time range, all ranks.", "none", _samples, 0)),
        (5, _pair("Typical step", "Median step time.", "s", _step)),
        (5, _pair("GPU use", "Mean of the run's GPUs. A means to an end: judge by samples/s.", "percentunit", _use, 0)),
        (5, _pair("GPU memory", "Most the run's processes held.", "bytes", _memory)),
    ]  # fmt: skip


def _verdict() -> Builder:
    gain = f"gpumon_finding_predicted_speedup_ratio{{{A}"

    def best(estimate: str) -> str:
        return f'max(max_over_time({gain}, estimate="{estimate}"}}{RANGE}))'

    return bars(
        "Predicted and realised speed-up", "What the best finding of A promised (at least, likely, at most), and what B achieved.", "none",
        Q(best("low"), "at least", instant=True), Q(best("likely"), "likely", instant=True), Q(best("high"), "at most", instant=True),
        Q(f"{_samples(B)} / {_samples(A)}", "realised", instant=True), steps=((None, "#8e8e8e"), (1, "#4b7bab"), (1.05, "#37a35c")), decimals=2,
    )  # fmt: skip


def _per_step(run: str) -> str:
    return (
        f"sum by (phase) (increase(gpumon_rank_phase_seconds_total{{{run}}}{RANGE})) "
        f"/ scalar(sum(increase(gpumon_rank_steps_total{{{run}}}{RANGE})))"
    )


def _phases() -> Builder:
    queries = [ask(_per_step(A)), ask(_per_step(B)), ask(f"{_per_step(B)} / on (phase) ({_per_step(A)} > 0)")]
    columns = [
        Column(
            "phase",
            "Phase",
            mapping=style.words({name: name for name in style.PHASE_COLORS}, style.PHASE_COLORS),
        ),
        Column("Value #A", "A, per step", "s", width=140),
        Column("Value #B", "B, per step", "s", width=140),
        Column(
            "Value #C",
            "B over A",
            width=120,
            steps=((None, "#37a35c"), (0.97, "#8e8e8e"), (1.05, "#d6293e")),
            decimals=2,
        ),
    ]
    return grid("Time per step by phase", "Mean over the time range and all ranks: which phase became shorter.", "phase", queries, columns,
                sort="A, per step")  # fmt: skip


def _findings() -> Builder:
    def seen(run: str) -> str:
        return f'max by (rule) (last_over_time(gpumon_finding_active{{{run}, severity=~"critical|warning|hint"}}{RANGE}))'

    either = f'label_replace(max by (rule) ({seen(A)} or {seen(B)}), "meaning", "$1", "rule", "(.*)")'
    likely = f'max by (rule) (max_over_time(gpumon_finding_predicted_speedup_ratio{{{A}, estimate="likely"}}{RANGE}))'
    queries = [ask(either), ask(seen(A)), ask(f"{seen(B)}"), ask(likely)]
    there = style.words({"1": "yes"}, {"1": "#f2902b"})
    columns = [
        Column("rule", "Finding", width=200),
        Column("meaning", "What it says", mapping=style.finding_words()),
        Column("Value #B", "In A", width=80, mapping=there),
        Column("Value #C", "In B", width=80, mapping=there),
        Column("Value #D", "Promised by A ×", width=130, steps=style.GAIN, decimals=2),
    ]
    return grid(
        "Findings of A and of B",
        "A finding in A that is not in B was acted on.",
        "rule",
        queries,
        columns,
        sort="Promised by A ×",
    )


def _throughput() -> Builder:
    return lines("Samples/s over time", "Steady window, all ranks.", "none", Q(f"sum(gpumon_run_samples_per_second{{{A}}})", "A"),
                 Q(f"sum(gpumon_run_samples_per_second{{{B}}})", "B"), colors=COLORS)  # fmt: skip


def _gpu() -> Builder:
    return lines("GPU use over time", "Mean of the run's GPUs.", "percentunit", Q(f"avg(gpumon:run_gpu_utilization:avg{{{_recorded(A)}}})", "A"),
                 Q(f"avg(gpumon:run_gpu_utilization:avg{{{_recorded(B)}}})", "B"), high=1, colors=COLORS)  # fmt: skip


def _loss() -> Builder:
    return lines("Loss", "Mean over ranks: faster is no gain if it no longer learns.", "none", Q(f"avg(gpumon_rank_loss{{{A}}})", "A"),
                 Q(f"avg(gpumon_rank_loss{{{B}}})", "B"), low=None, colors=COLORS)  # fmt: skip
