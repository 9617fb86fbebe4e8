"""Node and GPUs: one machine, every card, what holds it back, and its host."""

from __future__ import annotations

from typing import Any

from grafana import style
from grafana.dashboards import events, host
from grafana.layout import RUN_URL, Section, Strip, frame, scope, variable
from grafana.panels import Builder, Q, lines, number, states
from grafana.rules.model import POLICY
from grafana.tables import Column, ask, grid

N = 'job=~"$job", instance="$instance"'
S = N + ', gpu=~"$gpu"'
ABOUT = (
    "One machine: what every GPU does and what holds it back, the runs on it, errors, host and the daemon itself. "
    "Conditions and waste need grafana/rules/recording.yaml."
)


def build() -> Any:
    variables = [
        *scope(many=False),
        variable(
            "gpu", "GPU", 'label_values(gpumon_gpu_info{job=~"$job", instance="$instance"}, gpu)', many=True
        ),
    ]
    sections = [
        Section("At a glance", [Strip(4, _numbers()), Strip(7, [(12, _condition()), (12, _runs())])]),
        Section("Use", [Strip(8, [(8, _use()), (8, _activity()), (8, _memory())])]),
        Section("What holds it back", [Strip(8, [(8, _power()), (8, _temperature()), (8, _clocks())]),
                                       Strip(8, [(10, _throttle()), (7, _pcie()), (7, _nvlink())])]),
        Section("Errors", [Strip(7, [(24, _errors())])]),
        Section("Host", host.strips(N)),
        Section("gpumon itself", [Strip(7, host.own(N))]),
    ]  # fmt: skip
    marks = [events.xids(N), events.findings(N), events.run_begins(N), events.run_ends(N)]
    return frame("node", ABOUT, sections, variables, marks)


def _numbers() -> list[tuple[int, Builder]]:
    full = f"max(gpumon_gpu_memory_used_bytes{{{S}}} / gpumon_gpu_memory_total_bytes{{{S}}})"
    wasted = f"sum(sum_over_time(gpumon:wasted_gpus:sum{{{N}}}[$__range:30s])) / 120"
    host_memory = f"1 - gpumon_host_memory_available_bytes{{{N}}} / gpumon_host_memory_total_bytes{{{N}}}"
    hot = ((None, "#37a35c"), (80, "#f2902b"), (87, "#d6293e"))
    return [(3, panel) for panel in (
        number("GPUs", "Of this machine, as chosen above.", "none", Q(f"count(gpumon_gpu_up{{{S}}})", "GPUs")),
        number("GPU use", "Mean of the chosen GPUs.", "percentunit", Q(f"avg(gpumon_gpu_utilization_ratio{{{S}}})", "use"), steps=style.BUSY, decimals=0),
        number("GPU-hours wasted", "In this time range, on this machine: GPU time somebody had and did not use.", "none", Q(wasted, "wasted", instant=True),
               steps=((None, "#f2902b"),), decimals=2),
        number("Fullest GPU memory", f"Target: below {POLICY.memory_high:.0%}.", "percentunit", Q(full, "memory"), steps=style.FILL, decimals=0),
        number("Hottest GPU", "Core temperature.", "celsius", Q(f"max(gpumon_gpu_temperature_celsius{{{S}}})", "temperature"), steps=hot, decimals=0),
        number("Power", "Of the chosen GPUs.", "watt", Q(f"sum(gpumon_gpu_power_watts{{{S}}})", "power"), decimals=0),
        number("Host CPU", "Use over all cores.", "percentunit", Q(f"gpumon_host_cpu_utilization_ratio{{{N}}}", "CPU"),
               steps=((None, "#37a35c"), (POLICY.cpu_full, "#d6293e")), decimals=0),
        number("Host memory", "Used, excluding reclaimable memory.", "percentunit", Q(host_memory, "memory"), steps=style.FILL, decimals=0),
    )]  # fmt: skip


def _condition() -> Builder:
    names = list(style.CONDITION_COLORS)
    coded = "\nor ".join(
        f'{code} * gpumon:gpu_condition{{{S}, condition="{name}"}}' for code, name in enumerate(names, 1)
    )
    texts = {str(code): name for code, name in enumerate(names, 1)}
    colors = {str(code): style.CONDITION_COLORS[name] for code, name in enumerate(names, 1)}
    return states("What each GPU does", "Active, starved (a run is on it, it is not busy), held (a process has it and does nothing), free, lost.",
                  "none", Q(f"max by (gpu) ({coded})", "GPU {{gpu}}"), mapping=style.words(texts, colors))  # fmt: skip


def _runs() -> Builder:
    here = f"on (job, instance, run) gpumon_run_info{{{N}}}"
    queries = [
        ask(f"max by (run, name, user, slurm_job, pod) (gpumon_run_info{{{N}}})"),
        ask(f"count by (run) (gpumon_gpu_run{{{S}}})"),
        ask(f"sum by (run) (gpumon_run_samples_per_second{{{N}}} and {here})"),
        ask(f'avg by (run) (gpumon_run_phase_share_ratio{{{N}, phase="data"}})'),
        ask(
            f'topk by (run) (1, max by (run, rule) (gpumon_finding_predicted_speedup_ratio{{{N}, estimate="likely", run!=""}}))'
        ),
    ]
    columns = [
        Column("run", "Run", url=RUN_URL),
        Column("user", "User", width=75),
        Column("slurm_job", "Slurm job", width=85),
        Column("Value #B", "GPUs", width=60, decimals=0),
        Column("Value #C", "Samples/s", width=95, decimals=0),
        Column("Value #D", "Waits for data", "percentunit", width=115, steps=style.WAIT, decimals=0),
        Column("rule", "Best finding", width=170),
        Column("Value #E", "Likely gain ×", width=105, steps=style.GAIN, decimals=2),
    ]
    return grid(
        "Runs here",
        "Training runs on this machine; a click opens one.",
        "run",
        queries,
        columns,
        sort="Likely gain ×",
    )


def _each(title: str, about: str, unit: str, expr: str, high: float | None = None) -> Builder:
    return lines(title, about, unit, Q(expr, "GPU {{gpu}}"), high=high)


def _use() -> Builder:
    about = (
        "Share of time in which at least one kernel ran. High is good; how well it is filled is on the right."
    )
    return _each("GPU use by card", about, "percentunit", f"gpumon_gpu_utilization_ratio{{{S}}}", 1)


def _activity() -> Builder:
    kinds = {
        "sm_active": "SMs active",
        "sm_occupancy": "warps resident",
        "tensor_active": "tensor cores",
        "dram_active": "memory",
    }
    return lines("What the SMs really do", "Mean over the chosen GPUs, from GPM (Hopper and newer; absent on older cards).", "percentunit",
                 *[Q(f"avg(gpumon_gpu_{name}_ratio{{{S}}})", text) for name, text in kinds.items()], high=1)  # fmt: skip


def _memory() -> Builder:
    return _each("GPU memory by card", f"Share in use; target below {POLICY.memory_high:.0%}.", "percentunit",
                 f"gpumon_gpu_memory_used_bytes{{{S}}} / gpumon_gpu_memory_total_bytes{{{S}}}", 1)  # fmt: skip


def _power() -> Builder:
    return lines("Power against the limit", "Share of the power limit in force.", "percentunit",
                 Q(f"gpumon_gpu_power_watts{{{S}}} / gpumon_gpu_power_limit_watts{{{S}}}", "GPU {{gpu}}"))  # fmt: skip


def _temperature() -> Builder:
    return lines("Temperature", "Core temperature of each GPU, and where clocks are lowered.", "celsius",
                 Q(f"gpumon_gpu_temperature_celsius{{{S}}}", "GPU {{gpu}}"), Q(f"min(gpumon_gpu_temperature_slowdown_celsius{{{S}}})", "slowdown"),
                 low=None, colors={"slowdown": "#d6293e"})  # fmt: skip


def _clocks() -> Builder:
    return _each("SM clock against its maximum", f"Below {POLICY.throttle_clock_ratio:.0%} while busy, something holds the card back.", "percentunit",
                 f"gpumon_gpu_sm_clock_hertz{{{S}}} / gpumon_gpu_sm_clock_max_hertz{{{S}}}", 1)  # fmt: skip


def _throttle() -> Builder:
    active = f'gpumon_gpu_throttle_active{{{S}, reason!="gpu_idle"}}'
    seen = f"max_over_time({active}[$__range] @ end()) == 1"
    texts, colors = {"0": "no", "1": "throttled"}, {"0": "#2b3a4a", "1": "#f2902b"}
    return states("Why clocks are lowered", "Throttle reasons that were seen in this time range; being idle is not one.", "none",
                  Q(f"max by (gpu, reason) ({active} and on (job, instance, uuid, reason) ({seen}))", "GPU {{gpu}} {{reason}}"),
                  mapping=style.words(texts, colors))  # fmt: skip


def _pcie() -> Builder:
    return lines("PCIe", "Over all chosen GPUs: to the GPU and from it.", "Bps", Q(f"sum(gpumon_gpu_pcie_receive_bytes_per_second{{{S}}})", "to the GPUs"),
                 Q(f"sum(gpumon_gpu_pcie_transmit_bytes_per_second{{{S}}})", "from the GPUs"))  # fmt: skip


def _nvlink() -> Builder:
    sent = f"sum(gpumon_gpu_nvlink_transmit_bytes_per_second{{{S}}}) / sum(gpumon_gpu_nvlink_bandwidth_bytes_per_second{{{S}}})"
    got = f"sum(gpumon_gpu_nvlink_receive_bytes_per_second{{{S}}}) / sum(gpumon_gpu_nvlink_bandwidth_bytes_per_second{{{S}}})"
    return lines(
        "NVLink",
        "Traffic as a share of what the links could carry.",
        "percentunit",
        Q(sent, "sent"),
        Q(got, "received"),
    )


def _errors() -> Builder:
    queries = [
        ask(f"max by (gpu, name, uuid) (gpumon_gpu_info{{{S}}})"),
        ask(f"max by (gpu) (gpumon_gpu_up{{{S}}})"),
        ask(f'max by (gpu) (gpumon_gpu_ecc_errors{{{S}, type="uncorrected_volatile"}})'),
        ask(f'max by (gpu) (gpumon_gpu_ecc_errors{{{S}, type="corrected_volatile"}})'),
        ask(f"sum by (gpu) (gpumon_gpu_remapped_rows{{{S}}})"),
        ask(f"max by (gpu) (gpumon_gpu_remapped_rows_pending{{{S}}})"),
        ask(f"max by (gpu) (gpumon_gpu_xid_last{{{S}}})"),
        ask(f"1000 * max by (gpu) (gpumon_gpu_xid_last_timestamp_seconds{{{S}}})"),
        ask(f"max by (gpu) (gpumon_gpu_pcie_replays_total{{{S}}})"),
        ask(f"max by (gpu) (gpumon_gpu_reading_age_seconds{{{S}}})"),
    ]
    bad = style.ANY_IS_BAD
    columns = [
        Column("gpu", "GPU", width=60),
        Column("name", "Card"),
        Column("uuid", "UUID", width=330),
        Column(
            "Value #B",
            "Answers",
            width=80,
            steps=((None, "#d6293e"), (1, "#37a35c")),
            mapping=style.words({"0": "no", "1": "yes"}),
        ),
        Column("Value #C", "ECC uncorrected", width=125, steps=bad, decimals=0),
        Column("Value #D", "ECC corrected", width=115, decimals=0),
        Column("Value #E", "Rows remapped", width=120, decimals=0),
        Column(
            "Value #F", "Reset needed", width=110, steps=bad, mapping=style.words({"0": "no", "1": "yes"})
        ),
        Column("Value #G", "Last XID", width=80, steps=bad, decimals=0),
        Column("Value #H", "XID reported", "dateTimeFromNow", width=110),
        Column("Value #I", "PCIe replays", width=100, decimals=0),
        Column("Value #J", "Reading age", "s", width=100, decimals=1),
    ]
    return grid("Errors by GPU", "ECC since the driver was loaded, remapped memory rows, the newest XID event, PCIe packets sent again.",
                "gpu", queries, columns, sort="GPU", descending=False)  # fmt: skip
