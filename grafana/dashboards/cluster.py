"""Cluster: who has GPUs, who uses them, what is wasted and why, and where to look first."""

from __future__ import annotations

from typing import Any

from grafana import style
from grafana.dashboards import events
from grafana.layout import JOB, MACHINE, NODE_URL, RUN_URL, Section, Strip, frame, scope, variable
from grafana.panels import Builder, Q, bars, heat, lines, number, tiles
from grafana.rules.model import POLICY
from grafana.rules.recording import CARD, CONDITION_TEXT
from grafana.tables import Column, ask, grid

J = MACHINE
LIVE = 'and on (job, instance, run) (gpumon_run_state{state=~"running|stalled"} == 1)'
WHO = f'(gpumon_run_info{{{J}, user=~"$user"}} {LIVE})'
MINE = f"on (job, run) max by (job, run) {WHO}"
HOURS = "[$__range:30s])) / 120"
"""Sum of a value over the range in hours: the subquery step is 30 s, 120 of them per hour."""

ABOUT = (
    "GPUs by what they do, GPU-hours that somebody had and did not use, the runs that waste most with the "
    "finding that explains it, and machines in trouble. Needs the recording rules of grafana/rules/recording.yaml."
)


def build() -> Any:
    variables = [
        *scope(),
        variable(
            "user",
            "User",
            f"label_values(gpumon_run_info{{{J}}}, user)",
            many=True,
            about="Filters tables of runs.",
        ),
    ]
    sections = [
        Section("At a glance", [Strip(4, _counts()), Strip(4, _waste()), Strip(9, [(15, _conditions()), (9, _reasons())])]),
        Section("Runs that waste most, and why", [Strip(10, [(24, _worst())]), Strip(8, [(12, _findings()), (12, _stragglers())])]),
        Section("Machines", [Strip(9, [(12, _tiles()), (12, _spread())]), Strip(9, [(24, _nodes())])]),
        Section("Power, and the monitor itself", [Strip(7, [(10, _power()), (6, _alerts()), (8, _daemons())])]),
    ]  # fmt: skip
    return frame("cluster", ABOUT, sections, variables, [events.xids(J)])


def _count(condition: str, title: str) -> Builder:
    expr = f'count(gpumon:gpu_condition{{{J}, condition="{condition}"}}) or vector(0)'
    color = style.CONDITION_COLORS[condition]
    text = CONDITION_TEXT[condition]
    return number(title, f"{text[0].upper()}{text[1:]}.", "none", Q(expr, title), steps=((None, color),))


def _counts() -> list[tuple[int, Builder]]:
    total = number("GPUs", "GPUs of all machines.", "none", Q(f"sum(gpumon:gpus:count{{{J}}})", "GPUs"))
    live = f'count(max by (job, run) (gpumon_run_state{{{J}, state=~"running|stalled"}} == 1)) or vector(0)'
    runs = number("Live runs", "Training runs whose process lives.", "none", Q(live, "runs"))
    kinds = (
        _count("active", "Active"),
        _count("starved", "Starved"),
        _count("held", "Held, idle"),
        _count("free", "Free"),
        _count("lost", "Lost"),
    )
    nodes = number(
        "Machines",
        "Machines with a gpumon daemon.",
        "none",
        Q(f"count(gpumon_build_info{{{J}}})", "machines"),
    )
    return [(3, panel) for panel in (total, *kinds, runs, nodes)]


def _waste() -> list[tuple[int, Builder]]:
    wasted, had = f"gpumon:wasted_gpus:sum{{{J}}}", f"gpumon:allocated_gpus:count{{{J}}}"
    share_steps = (
        (None, "#37a35c"),
        (1 - POLICY.gpu_busy_high, "#f2cc0c"),
        (1 - POLICY.gpu_busy_low, "#f2902b"),
    )
    return [
        (6, number("Wasted GPU-hours in this time range", "GPU time somebody had (a run, or a process that holds the card) in which the "
                   "GPU did nothing, summed over all machines.", "none", Q(f"sum(sum_over_time({wasted}{HOURS}", "wasted", instant=True),
                   steps=((None, "#f2902b"),), decimals=2)),
        (6, number("Share of allocated GPU time wasted", f"Target: below {1 - POLICY.gpu_busy_low:.0%}, the use a training GPU should have at least.",
                   "percentunit", Q(f"sum({wasted}) / sum({had})", "wasted share"), steps=share_steps, decimals=0)),
        (6, number("Recoverable GPUs", "If every run acted on its best finding: what the predicted speed-ups are worth in GPUs, now.",
                   "none", Q(f"sum(gpumon:run_recoverable_gpus:sum{{{JOB}}}) or vector(0)", "recoverable"),
                   steps=((None, "#4b7bab"), (1, "#f2902b")), decimals=1)),
        (6, number("Use of training GPUs", "Mean use of GPUs that a run is on.", "percentunit",
                   Q(f"avg(gpumon:gpu_utilization:avg1m{{{J}}} and {CARD} gpumon:gpu_trains:max)", "use"), steps=style.BUSY, decimals=0)),
    ]  # fmt: skip


def _conditions() -> Builder:
    text = " ".join(f"**{name}**: {meaning}." for name, meaning in CONDITION_TEXT.items())
    return lines(
        "GPUs by condition", text, "none",
        Q(f"count by (condition) (gpumon:gpu_condition{{{J}}})", "{{condition}}"),
        stack=True, colors=style.CONDITION_COLORS, legend_right=True,
    )  # fmt: skip


def _reasons() -> Builder:
    best = f"(gpumon:run_best_finding:speedup{{{JOB}}} > bool 0)"
    of_runs = f"gpumon:run_wasted_gpus:sum{{{JOB}}} * on (job, run) group_left (rule) {best}"
    unexplained = f"gpumon:run_wasted_gpus:sum{{{JOB}}} unless on (job, run) gpumon:run_best_finding:speedup"
    held = f"gpumon:gpu_wasted:ratio{{{J}}} unless {CARD} gpumon:gpu_trains:max"
    expr = (
        f"sort_desc(sum by (rule) ({of_runs}\n"
        f'or label_replace({unexplained}, "rule", "no finding yet", "", "")\n'
        f'or label_replace({held}, "rule", "job.gpu_idle", "", "")))'
    )
    return bars(
        "Wasted GPUs by reason, now", "The wasted share of each run's GPUs under the finding that promises most for it; "
        "job.gpu_idle is GPUs that are held without a run.", "none",
        Q(expr, "{{rule}}", instant=True), steps=((None, "#f2902b"),), decimals=2,
    )  # fmt: skip


def _worst() -> Builder:
    queries = [
        ask(f"max by (run, name, user, slurm_job) {WHO}"),
        ask(f"sum by (run) (gpumon:run_wasted_gpus:sum{{{JOB}}} and {MINE})"),
        ask(f"sum by (run) (gpumon:run_gpus:sum{{{JOB}}} and {MINE})"),
        ask(f"avg by (run) (gpumon:run_gpu_utilization:avg{{{JOB}}} and {MINE})"),
        ask(f'label_replace(max by (run, rule) (gpumon:run_best_finding:speedup{{{JOB}}} and {MINE}), "reason", "$1", "rule", "(.*)")'),
        ask(f"sum by (run) (sum_over_time(gpumon:run_wasted_gpus:sum{{{JOB}}}[$__range:30s]) and {MINE}) / 120"),
    ]  # fmt: skip
    columns = [
        Column("run", "Run", width=230, url=RUN_URL),
        Column("user", "User", width=80),
        Column("slurm_job", "Slurm job", width=85),
        Column("Value #C", "GPUs", width=60, decimals=1),
        Column("Value #D", "GPU use", "percentunit", width=110, steps=style.BUSY, gauge=True, decimals=0),
        Column("Value #B", "GPUs wasted", width=100, decimals=2),
        Column("Value #F", "GPU-hours wasted", width=130, decimals=2),
        Column("rule", "Finding", width=190),
        Column("reason", "Reason", mapping=style.finding_words()),
        Column("Value #E", "Likely gain ×", width=105, steps=style.GAIN, decimals=2),
    ]
    return grid(
        "Worst runs", "Live runs by the GPUs they have and do not use, with the finding that promises most and its predicted "
        "speed-up. A click on a run opens it.", "run", queries, columns, sort="GPUs wasted",
    )  # fmt: skip


def _findings() -> Builder:
    active = f'gpumon_finding_active{{{J}, severity=~"critical|warning|hint"}}'
    queries = [
        ask(f'label_replace(count by (rule) ({active}), "meaning", "$1", "rule", "(.*)")'),
        ask(f'max by (rule) (gpumon_finding_predicted_speedup_ratio{{{J}, estimate="likely"}} and on (job, instance, rule, run) {active})'),
    ]  # fmt: skip
    columns = [
        Column("rule", "Finding", width=190),
        Column("meaning", "What it says", mapping=style.finding_words()),
        Column("Value #A", "Open", width=60, decimals=0),
        Column("Value #B", "Best gain ×", width=95, steps=style.GAIN, decimals=2),
    ]
    return grid(
        "Open findings",
        "What the advice engines of all machines report now, by rule.",
        "rule",
        queries,
        columns,
        sort="Open",
    )


def _stragglers() -> Builder:
    queries = [ask(f"topk(20, gpumon:rank_skew:ratio{{{J}}} > {POLICY.straggler_ratio})")]
    columns = [
        Column("run", "Run", url=RUN_URL),
        Column("rank", "Rank", width=60),
        Column("instance", "Machine", width=170, url=NODE_URL),
        Column("Value", "Own work over the usual rank's", width=210, steps=style.SKEW, decimals=2),
    ]
    return grid(
        "Stragglers", f"Ranks whose own work (waiting in collectives left out) takes more than {POLICY.straggler_ratio:g} times that of "
        "the usual rank of their run: everybody waits for them.", "run", queries, columns, sort="Own work over the usual rank's",
    )  # fmt: skip


def _tiles() -> Builder:
    use = f"gpumon:gpu_utilization:avg{{{J}}}"
    chosen = f"bottomk(20, avg_over_time({use}[$__range] @ end()) and on (job, instance) gpumon:allocated_gpus:count)"
    return tiles(
        "GPU use by machine", "The 20 machines with the lowest mean use among those whose GPUs somebody has.", "percentunit",
        Q(f"{use} and on (job, instance) ({chosen})", "{{instance}}"), steps=style.BUSY,
    )  # fmt: skip


def _spread() -> Builder:
    expr = f'count_values("use", clamp_max(floor(10 * gpumon:gpu_utilization:avg1m{{{J}}}), 9) * 10)'
    return heat(
        "GPUs by use", "How many GPUs are 0–10 %, 10–20 % … 90–100 % busy: two bands far apart are a cluster that is half starved.",
        "none", Q(expr, "{{use}} %"), scheme="Blues", axis_unit="none",
    )  # fmt: skip


def _nodes() -> Builder:
    by = "by (instance)"
    queries = [
        ask(f"sum {by} (gpumon:gpus:count{{{J}}})"),
        ask(f"avg {by} (gpumon:gpu_utilization:avg{{{J}}})"),
        ask(f"sum {by} (gpumon:wasted_gpus:sum{{{J}}})"),
        ask(f"max {by} (gpumon_gpu_temperature_celsius{{{J}}})"),
        ask(f"sum {by} (gpumon_gpu_power_watts{{{J}}})"),
        ask(f'sum {by} (gpumon_gpu_throttle_active{{{J}, reason=~"sw_thermal_slowdown|hw_.*"}})'),
        ask(f"sum {by} (gpumon_gpu_up{{{J}}} == bool 0)"),
        ask(f"max {by} (time() - gpumon_snapshot_timestamp_seconds{{{J}}})"),
    ]
    columns = [
        Column("instance", "Machine", url=NODE_URL),
        Column("Value #A", "GPUs", width=70, decimals=0),
        Column("Value #B", "GPU use", "percentunit", width=160, steps=style.BUSY, gauge=True, decimals=0),
        Column("Value #C", "GPUs wasted", width=110, decimals=2),
        Column("Value #D", "Hottest", "celsius", width=90, decimals=0),
        Column("Value #E", "Power", "watt", width=100, decimals=0),
        Column("Value #F", "Throttle reasons", width=130, steps=style.ANY_IS_BAD, decimals=0),
        Column("Value #G", "GPUs lost", width=90, steps=style.ANY_IS_BAD, decimals=0),
        Column(
            "Value #H", "Snapshot age", "s", width=120, steps=((None, "#37a35c"), (30, "#d6293e")), decimals=1
        ),
    ]
    return grid(
        "All machines",
        "Every machine with its GPUs; a click opens it.",
        "instance",
        queries,
        columns,
        sort="GPUs wasted",
    )


def _power() -> Builder:
    watts = f"sum(gpumon_gpu_power_watts{{{J}}})"
    idle = f'sum(gpumon_gpu_power_watts{{{J}}} and {CARD} (gpumon:gpu_condition{{condition=~"starved|held"}})) or vector(0)'
    return lines(
        "Power", "All GPUs, and those of them that are starved or held idle.", "watt",
        Q(watts, "all GPUs"), Q(idle, "starved or held"), colors={"all GPUs": "#4b7bab", "starved or held": "#f2902b"},
    )  # fmt: skip


def _alerts() -> Builder:
    expr = 'sort_desc(count by (alertname) (ALERTS{alertname=~"Gpumon.*", alertstate=~"firing|pending"}))'
    return bars("Alerts firing or pending", "From grafana/rules/alerts.yaml, by name.", "none", Q(expr, "{{alertname}}", instant=True),
                steps=((None, "#37a35c"), (1, "#d6293e")), decimals=0)  # fmt: skip


def _daemons() -> Builder:
    return lines(
        "What gpumon itself costs", "CPU of the daemons as a share of one core: the mean machine and the worst.", "percentunit",
        Q(f"avg(rate(process_cpu_seconds_total{{{J}}}[$__rate_interval]) and on (job, instance) gpumon_build_info)", "mean"),
        Q(f"max(rate(process_cpu_seconds_total{{{J}}}[$__rate_interval]) and on (job, instance) gpumon_build_info)", "worst"),
    )  # fmt: skip
