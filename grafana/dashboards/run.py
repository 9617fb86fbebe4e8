"""Training run: how fast, where the time goes, what gpumon found, and what the GPUs did meanwhile."""

from __future__ import annotations

from typing import Any

from grafana import style
from grafana.dashboards import events
from grafana.layout import JOB, MACHINE, Section, Strip, frame, scope, variable
from grafana.panels import Builder, Q, bars, heat, lines, number
from grafana.rules.model import POLICY
from grafana.tables import Column, ask, grid

RUN = 'run="$run"'
R = f"{MACHINE}, {RUN}"
RATE = "[$__rate_interval]"
ABOUT = (
    "One training run over all its ranks and machines: throughput, step time, the share of every phase, findings "
    "with remedy and predicted gain, and its GPUs. Skew and waste need grafana/rules/recording.yaml."
)
STATES = {"1": "running", "2": "stalled", "3": "ended", "4": "failed", "5": "killed"}


def build() -> Any:
    variables = [*scope(), variable("run", "Run", f"label_values(gpumon_run_info{{{MACHINE}}}, run)")]
    sections = [
        Section("At a glance", [Strip(4, _numbers()), Strip(8, [(24, findings(R))])]),
        Section("Where the time goes", [
            Strip(9, [(15, shares(R)), (9, _phase_bars())]),
            Strip(8, [(15, _gpu_use()), (9, _device())]),
        ]),
        Section("Speed", [Strip(8, [(8, _throughput()), (8, step_heat(R)), (8, _percentiles())])]),
        Section("Ranks", [Strip(8, [(7, _skew()), (7, _rank_steps()), (10, _live())])]),
        Section("Loss and scalars", [Strip(7, [(12, _loss()), (12, _scalars())])]),
        Section("Memory, CPU and input", [Strip(8, [(8, _memory()), (8, _cores()), (8, _resident())]),
                                          Strip(7, [(8, _reads()), (8, _stalls()), (8, _quality())])]),
    ]  # fmt: skip
    marks = [events.findings(R), events.run_begins(R), events.run_ends(R)]
    return frame("run", ABOUT, sections, variables, marks, span="now-30m")


def _numbers() -> list[tuple[int, Builder]]:
    coded = "\nor ".join(
        f'{code} * (gpumon_run_state{{{R}, state="{name}"}} == 1)' for code, name in STATES.items()
    )
    colors = {code: style.STATE_COLORS[name] for code, name in STATES.items()}
    best = f'max(gpumon_finding_predicted_speedup_ratio{{{R}, estimate="likely"}}) or vector(1)'
    data = f'avg(gpumon_run_phase_share_ratio{{{R}, phase="data"}})'
    return [(3, panel) for panel in (
        number("State", "Of the run; the worst of its machines.", "none", Q(f"max({coded})", "state"), mapping=style.words(STATES, colors)),
        number("Samples/s", "Over the steady window, all ranks.", "none", Q(f"sum(gpumon_run_samples_per_second{{{R}}})", "samples/s"), decimals=0),
        number("Typical step", "Median step time of the slowest machine.", "s", Q(f'max(gpumon_run_step_percentile_seconds{{{R}, percentile="50"}})', "p50")),
        number("GPU use", "Mean of the run's GPUs.", "percentunit", Q(f"avg({_own_gpus('gpumon_gpu_utilization_ratio')})", "use"), steps=style.BUSY, decimals=0),
        number("Waits for data", "Share of the step in which the loop waits for the loader.", "percentunit", Q(data, "data"), steps=style.WAIT, decimals=0),
        number("Speed against its best", "Throughput now over the best sustained throughput of the run.", "percentunit",
               Q(f"min(gpumon_run_trend_ratio{{{R}}})", "trend"), steps=style.TREND, decimals=0),
        number("Gain waiting", "Likely speed-up of the finding that promises most; 1 is nothing to gain.", "none", Q(best, "×"), steps=style.GAIN, decimals=2),
        number("GPU-hours wasted", "In this time range: GPU time the run had and did not use.", "none",
               Q(f"sum(sum_over_time(gpumon:run_wasted_gpus:sum{{{JOB}, {RUN}}}[$__range:30s])) / 120", "wasted", instant=True), steps=((None, "#f2902b"),), decimals=2),
    )]  # fmt: skip


def _own_gpus(metric: str) -> str:
    return f"{metric} and on (job, instance, uuid) gpumon_gpu_run{{{R}}}"


def findings(selector: str) -> Builder:
    def gain(estimate: str) -> str:
        return f'max by (rule) (gpumon_finding_predicted_speedup_ratio{{{selector}, estimate="{estimate}"}})'

    twice = f"max by (rule, severity) (gpumon_finding_active{{{selector}}})"
    labelled = f'label_replace(label_replace({twice}, "meaning", "$1", "rule", "(.*)"), "remedy", "$1", "rule", "(.*)")'
    queries = [ask(labelled), ask(gain("low")), ask(gain("likely")), ask(gain("high")),
               ask(f"1000 * min by (rule) (gpumon_finding_since_timestamp_seconds{{{selector}}})")]  # fmt: skip
    severities = style.words({name: name for name in style.SEVERITY_COLORS}, style.SEVERITY_COLORS)
    columns = [
        Column("severity", "Severity", width=85, mapping=severities),
        Column("rule", "Finding", width=180),
        Column("meaning", "What it says", mapping=style.finding_words()),
        Column("remedy", "What to do", mapping=style.remedy_words()),
        Column("Value #B", "At least ×", width=85, decimals=2),
        Column("Value #C", "Likely gain ×", width=105, steps=style.GAIN, decimals=2),
        Column("Value #D", "At most ×", width=85, decimals=2),
        Column("Value #E", "Since", "dateTimeFromNow", width=120),
    ]
    return grid(
        "Findings", "What the advice engine says about this run now, ranked by predicted gain. Evidence and the code change with this "
        "run's own values: `gpumon show RUN` or `gpumon tui`.", "rule", queries, columns, sort="Likely gain ×",
    )  # fmt: skip


def shares(selector: str, title: str = "Share of step time by phase") -> Builder:
    """Answers are sorted by label: `order` puts waiting at the bottom, with compute on top of it."""
    spent = f"rate(gpumon_rank_phase_seconds_total{{{selector}}}{RATE})"
    share = f"sum by (phase) ({spent}) / scalar(sum({spent}))"
    return lines(
        title, "Start to start, all ranks, including the time between steps. Waiting for data is orange; blue is compute.",
        "percentunit", Q(f'label_replace({share}, "order", "1", "phase", "data|transfer|sync")', "{{phase}}"),
        stack=True, high=1, colors=style.PHASE_COLORS, legend_right=True,
    )  # fmt: skip


def _phase_bars() -> Builder:
    expr = f"sort_desc(sum by (phase) (increase(gpumon_rank_phase_seconds_total{{{R}}}[$__range])) / scalar(sum(increase(gpumon_rank_steps_total{{{R}}}[$__range]))))"
    return bars(
        "Time per step by phase",
        "Mean over this time range and all ranks.",
        "s",
        Q(expr, "{{phase}}", instant=True),
    )


def _gpu_use() -> Builder:
    return lines(
        "GPU use meanwhile", f"GPUs of this run; the target is {POLICY.gpu_busy_low:.0%} to {POLICY.gpu_busy_high:.0%}.", "percentunit",
        Q(f"avg by (instance, gpu) ({_own_gpus('gpumon_gpu_utilization_ratio')})", "{{instance}} GPU {{gpu}}"), high=1, legend_right=True,
    )  # fmt: skip


def _device() -> Builder:
    return lines(
        "Device time from events", "Measured on the device's own clock; absent for runs on the CPU.",
        "percentunit", Q(f"avg(gpumon_rank_device_busy_ratio{{{R}}})", "busy"), Q(f"avg(gpumon_rank_starved_ratio{{{R}}})", "starved"),
        colors={"busy": "#37a35c", "starved": "#f2902b"},
    )  # fmt: skip


def _throughput() -> Builder:
    return lines(
        "Throughput", "Samples a second over all ranks: counted, and of the steady window (no warm-up, no stalls).", "none",
        Q(f"sum(rate(gpumon_rank_samples_total{{{R}}}{RATE}))", "samples/s, counted"), Q(f"sum(gpumon_run_samples_per_second{{{R}}})", "samples/s, steady"),
        colors={"samples/s, counted": "#3274d9", "samples/s, steady": "#37a35c"},
    )  # fmt: skip


def step_heat(selector: str, title: str = "Step time") -> Builder:
    query = Q(
        f"sum by (le) (increase(gpumon_rank_step_seconds_bucket{{{selector}}}{RATE}))",
        "{{le}}",
        format="heatmap",
        exemplar=True,
    )
    return heat(
        title,
        "Steps by how long they took, all ranks; exemplars name the step.",
        "none",
        query,
        axis_unit="s",
    )


def _percentiles() -> Builder:
    return lines(
        "Step time percentiles", "Of the steady window, the slowest machine.", "s",
        Q(f"max by (percentile) (gpumon_run_step_percentile_seconds{{{R}}})", "p{{percentile}}"),
        colors={"p50": "#37a35c", "p95": "#f2902b", "p99": "#d6293e"},
    )  # fmt: skip


def _widest(metric: str) -> str:
    """The 16 ranks with the highest values in the time range: a run may have a thousand."""
    top = f"topk(16, max by (rank) (max_over_time({metric}{{{R}}}[$__range] @ end())))"
    return f"max by (rank) ({metric}{{{R}}}) and on (rank) ({top})"


def _skew() -> Builder:
    return lines(
        "Skew of ranks", f"Own work of a rank over the usual rank's: above {POLICY.straggler_ratio:g} it is a straggler all others wait for.", "none",
        Q(_widest("gpumon:rank_skew:ratio"), "rank {{rank}}"), low=None, legend_right=True,
    )  # fmt: skip


def _rank_steps() -> Builder:
    return lines("Step time by rank", "Mean of the steady window; the 16 slowest ranks.", "s",
                 Q(_widest("gpumon_rank_step_mean_seconds"), "rank {{rank}}"), legend_right=True)  # fmt: skip


def _live() -> Builder:
    queries = [
        ask(f"max by (rank, phase) (gpumon_rank_live_phase_seconds{{{R}}})"),
        ask(f"max by (rank, instance, device) (gpumon_rank_info{{{R}}})"),
        ask(f"max by (rank) (gpumon_rank_steps_total{{{R}}})"),
        ask(f"max by (rank) (time() - gpumon_rank_last_step_timestamp_seconds{{{R}}})"),
    ]
    columns = [
        Column("rank", "Rank", width=60),
        Column("instance", "Machine"),
        Column("device", "Device", width=75),
        Column("Value #C", "Steps", width=85, decimals=0),
        Column("phase", "In phase now", width=110),
        Column("Value #A", "for", "s", width=80, decimals=2),
        Column(
            "Value #D",
            "Last step ago",
            "s",
            width=110,
            steps=((None, "#37a35c"), (POLICY.hung_seconds, "#d6293e")),
            decimals=1,
        ),
    ]
    return grid("Ranks now", "Where each rank runs, the phase that is open, and for how long: hangs show up here.", "rank", queries, columns,
                sort="Rank", descending=False)  # fmt: skip


def _loss() -> Builder:
    return lines(
        "Loss", "Newest loss of the ranks: mean, and the span over ranks.", "none",
        Q(f"avg(gpumon_rank_loss{{{R}}})", "mean"), Q(f"min(gpumon_rank_loss{{{R}}})", "lowest rank"), Q(f"max(gpumon_rank_loss{{{R}}})", "highest rank"),
        low=None, colors={"mean": "#3274d9", "lowest rank": "#8e8e8e", "highest rank": "#8e8e8e"},
    )  # fmt: skip


def _scalars() -> Builder:
    return lines("Own scalars", "Numbers the training script reports itself; gpumon's probes (with a dot in their name) are left out.", "none",
                 Q(f'avg by (scalar) (gpumon_rank_scalar{{{R}, scalar!~".*[.].*"}})', "{{scalar}}"), low=None, legend_right=True)  # fmt: skip


def _memory() -> Builder:
    return lines(
        "Device memory", "Held by tensors, by the allocator, and by the run's processes as the driver sees it.", "bytes",
        Q(f"sum(gpumon_rank_device_memory_allocated_bytes{{{R}}})", "tensors"), Q(f"sum(gpumon_rank_device_memory_reserved_bytes{{{R}}})", "allocator"),
        Q(f"sum(gpumon_gpu_run_memory_bytes{{{R}}})", "driver"),
    )  # fmt: skip


def _cores() -> Builder:
    return lines("CPU", "Cores the training processes and their workers use, and the cores of their machines.", "none",
                 Q(f"sum by (role) (gpumon_run_cpu_cores{{{R}}})", "{{role}}"), stack=True, legend_right=False)  # fmt: skip


def _resident() -> Builder:
    return lines("Memory of the processes", "Resident memory of training processes and workers: steady growth is a leak.", "bytes",
                 Q(f"sum by (role) (gpumon_run_resident_memory_bytes{{{R}}})", "{{role}}"), stack=True)  # fmt: skip


def _reads() -> Builder:
    return lines("Storage", "Bytes the run's processes read and write.", "Bps", Q(f"sum(gpumon_run_read_bytes_per_second{{{R}}})", "read"),
                 Q(f"sum(gpumon_run_write_bytes_per_second{{{R}}})", "write"))  # fmt: skip


def _stalls() -> Builder:
    return bars("Time in stalls", "Steps far longer than the usual one, by cause, over the whole run and all ranks.", "s",
                Q(f"sort_desc(sum by (kind) (gpumon_rank_stall_seconds_total{{{R}}}))", "{{kind}}", instant=True), steps=((None, "#f2902b"),))  # fmt: skip


def _quality() -> Builder:
    return lines(
        "Quality of the measurement", "What gpumon costs inside the loop, and the share of steps it could not read.", "percentunit",
        Q(f"max(gpumon_rank_overhead_ratio{{{R}}})", "overhead"),
        Q(f"sum(gpumon_rank_lost_records_total{{{R}}}) / sum(gpumon_rank_steps_total{{{R}}})", "records lost"),
        colors={"overhead": "#4b7bab", "records lost": "#d6293e"},
    )  # fmt: skip
