"""Panels about the host and the daemon: parts of the node dashboard."""

from __future__ import annotations

from grafana.layout import Strip
from grafana.panels import Builder, Q, lines, number


def strips(n: str) -> list[Strip]:
    return [Strip(7, [(8, _cpu(n)), (8, _memory(n)), (8, _pressure(n))]), Strip(7, [(8, _disks(n)), (8, _busy(n)), (8, _network(n))])]  # fmt: skip


def _cpu(n: str) -> Builder:
    return lines("CPU by mode", "Share of all cores; iowait is waiting for storage.", "percentunit",
                 Q(f"gpumon_host_cpu_mode_ratio{{{n}}}", "{{mode}}"), stack=True, high=1,
                 colors={"user": "#3274d9", "system": "#8f3bb8", "iowait": "#f2902b", "steal": "#d6293e"})  # fmt: skip


def _memory(n: str) -> Builder:
    return lines("Memory", "Used, page cache, shared (tmpfs, DataLoader workers) and swap, against the total.", "bytes",
                 Q(f"gpumon_host_memory_used_bytes{{{n}}}", "used"), Q(f"gpumon_host_memory_cached_bytes{{{n}}}", "page cache"),
                 Q(f"gpumon_host_memory_shared_bytes{{{n}}}", "shared"), Q(f"gpumon_host_swap_used_bytes{{{n}}}", "swap"),
                 Q(f"gpumon_host_memory_total_bytes{{{n}}}", "total"), colors={"total": "#8e8e8e", "swap": "#d6293e"})  # fmt: skip


def _pressure(n: str) -> Builder:
    return lines("Pressure", "Share of the last 10 s in which some task waited for CPU, memory or I/O (Linux PSI).", "percentunit",
                 Q(f'gpumon_host_pressure_ratio{{{n}, kind="some"}}', "{{resource}}"))  # fmt: skip


def _disks(n: str) -> Builder:
    return lines("Disks", "Read and written, all disks.", "Bps", Q(f"sum(gpumon_host_disk_read_bytes_per_second{{{n}}})", "read"),
                 Q(f"sum(gpumon_host_disk_write_bytes_per_second{{{n}}})", "write"))  # fmt: skip


def _busy(n: str) -> Builder:
    return lines(
        "Disk busy",
        "Share of time a disk had a request.",
        "percentunit",
        Q(f"gpumon_host_disk_busy_ratio{{{n}}}", "{{disk}}"),
        high=1,
    )


def _network(n: str) -> Builder:
    return lines("Network", "By interface: received and sent.", "Bps", Q(f"gpumon_host_network_receive_bytes_per_second{{{n}}}", "{{interface}} in"),
                 Q(f"gpumon_host_network_transmit_bytes_per_second{{{n}}}", "{{interface}} out"))  # fmt: skip


def own(n: str) -> list[tuple[int, Builder]]:
    """The monitor's own health and cost."""
    left_out = f"sum(gpumon_metrics_left_out{{{n}}})"
    return [
        (7, lines("Collectors", "How long each took in the newest round.", "s", Q(f"gpumon_collector_duration_seconds{{{n}}}", "{{collector}}"))),
        (6, lines("CPU of the daemon", "Share of one core.", "percentunit", Q(f"rate(process_cpu_seconds_total{{{n}}}[$__rate_interval])", "CPU"))),
        (5, lines("Memory of the daemon", "Resident.", "bytes", Q(f"process_resident_memory_bytes{{{n}}}", "resident"))),
        (3, number("Collectors failing", "In the newest round.", "none", Q(f"sum(gpumon_collector_success{{{n}}} == bool 0)", "failing"),
                   steps=((None, "#37a35c"), (1, "#d6293e")))),
        (3, number("Left out by caps", "Runs, ranks, scalars and findings that are not in the metrics.", "none", Q(left_out, "left out"),
                   steps=((None, "#37a35c"), (1, "#f2902b")))),
    ]  # fmt: skip
