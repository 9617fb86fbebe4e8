"""Host families: what training waits for when it does not wait for the GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from monitor.model.host import Cpu, Host, Memory, Pressure
from monitor.web.families.base import Family, Kind, Sample, Scene

ONE = "1"


def _of(
    name: str, kind: Kind, help: str, value: Callable[[Host], float | None], source: str, cost: str = ONE
) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        return (((), value(scene.snapshot.host)),)

    return Family(f"gpumon_host_{name}", kind, help, (), read, source, cost)


def _cpu(name: str, kind: Kind, help: str, value: Callable[[Cpu], float | None], source: str) -> Family:
    return _of(name, kind, help, lambda host: value(host.cpu) if host.cpu else None, source)


def _memory(name: str, kind: Kind, help: str, value: Callable[[Memory], float | None], source: str) -> Family:
    return _of(name, kind, help, lambda host: value(host.memory) if host.memory else None, source)


def _each(
    name: str,
    kind: Kind,
    help: str,
    labels: tuple[str, ...],
    values: Callable[[Host], Iterable[Sample]],
    source: str,
    cost: str,
) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        return values(scene.snapshot.host)

    return Family(f"gpumon_host_{name}", kind, help, labels, read, source, cost)


def _info(host: Host) -> Iterable[Sample]:
    yield (host.hostname, host.kernel or ""), 1.0


def _cpu_modes(host: Host) -> Iterable[Sample]:
    cpu = host.cpu
    if cpu:
        yield ("user",), cpu.user_ratio
        yield ("system",), cpu.system_ratio
        yield ("iowait",), cpu.iowait_ratio
        yield ("steal",), cpu.steal_ratio


def _cores(host: Host) -> Iterable[Sample]:
    for core, ratio in enumerate(host.cpu.per_core_ratio if host.cpu else ()):
        yield (str(core),), ratio


def _load(host: Host) -> Iterable[Sample]:
    if host.cpu:
        yield ("1m",), host.cpu.load_1m
        yield ("5m",), host.cpu.load_5m
        yield ("15m",), host.cpu.load_15m


def _pressures(host: Host) -> Iterable[tuple[str, Pressure]]:
    if host.cpu:
        yield "cpu", host.cpu.pressure
    if host.memory:
        yield "memory", host.memory.pressure
    yield "io", host.io_pressure


def _pressure_ratio(host: Host) -> Iterable[Sample]:
    for resource, pressure in _pressures(host):
        yield (resource, "some"), pressure.some_ratio
        yield (resource, "full"), pressure.full_ratio


def _pressure_seconds(host: Host) -> Iterable[Sample]:
    for resource, pressure in _pressures(host):
        yield (resource, "some"), pressure.some_seconds
        yield (resource, "full"), pressure.full_seconds


def _disk_read(host: Host) -> Iterable[Sample]:
    return [((disk.name,), disk.read_bytes_per_second) for disk in host.disks]


def _disk_write(host: Host) -> Iterable[Sample]:
    return [((disk.name,), disk.write_bytes_per_second) for disk in host.disks]


def _disk_busy(host: Host) -> Iterable[Sample]:
    return [((disk.name,), disk.busy_ratio) for disk in host.disks]


def _net_in(host: Host) -> Iterable[Sample]:
    return [((net.name,), net.receive_bytes_per_second) for net in host.networks]


def _net_out(host: Host) -> Iterable[Sample]:
    return [((net.name,), net.transmit_bytes_per_second) for net in host.networks]


DISKS, NETWORKS = "1 per disk", "1 per network interface"

FAMILIES = (
    _each("info", "info", "Name and kernel of the machine.", ("hostname", "kernel"), _info, "uname", ONE),
    _of("boot_timestamp_seconds", "gauge", "When the machine started.", lambda h: h.boot_time, "/proc/stat"),
    _cpu("cpu_cores", "gauge", "Logical CPU cores.", lambda c: c.cores, "/proc/stat"),
    _cpu("cpu_utilization_ratio", "gauge", "CPU use over all cores.", lambda c: c.utilization_ratio, "/proc/stat"),
    _each("cpu_mode_ratio", "gauge", "Share of CPU time by mode.", ("mode",), _cpu_modes, "/proc/stat", "4"),
    _each("cpu_core_utilization_ratio", "gauge", "Use of one core.", ("core",), _cores, "/proc/stat", "1 per core"),
    _cpu("cpu_frequency_hertz", "gauge", "Mean clock of the cores.", lambda c: c.frequency_hertz, "cpufreq"),
    _each("load", "gauge", "Load average.", ("window",), _load, "/proc/loadavg", "3"),
    _each("pressure_ratio", "gauge", "Share of the last 10 s in which some or all tasks waited (PSI).", ("resource", "kind"), _pressure_ratio, "/proc/pressure", "up to 6"),
    _each("pressure_seconds_total", "counter", "Time in which some or all tasks waited (PSI).", ("resource", "kind"), _pressure_seconds, "/proc/pressure", "up to 6"),
    _memory("memory_total_bytes", "gauge", "Memory of the machine.", lambda m: m.total_bytes, "/proc/meminfo"),
    _memory("memory_available_bytes", "gauge", "Memory that could be had without swapping.", lambda m: m.available_bytes, "/proc/meminfo"),
    _memory("memory_used_bytes", "gauge", "Memory in use.", lambda m: m.used_bytes, "/proc/meminfo"),
    _memory("memory_cached_bytes", "gauge", "Page cache.", lambda m: m.cached_bytes, "/proc/meminfo"),
    _memory("memory_shared_bytes", "gauge", "Shared memory, tmpfs included (DataLoader workers).", lambda m: m.shared_bytes, "/proc/meminfo"),
    _memory("swap_total_bytes", "gauge", "Swap space.", lambda m: m.swap_total_bytes, "/proc/meminfo"),
    _memory("swap_used_bytes", "gauge", "Swap space in use.", lambda m: m.swap_used_bytes, "/proc/meminfo"),
    _memory("swap_in_bytes_per_second", "gauge", "Read back from swap.", lambda m: m.swap_in_bytes_per_second, "/proc/vmstat"),
    _memory("swap_out_bytes_per_second", "gauge", "Written to swap.", lambda m: m.swap_out_bytes_per_second, "/proc/vmstat"),
    _of("shm_free_bytes", "gauge", "Free space in /dev/shm.", lambda h: h.shm_free_bytes, "statvfs"),
    _each("disk_read_bytes_per_second", "gauge", "Read from a disk.", ("disk",), _disk_read, "/proc/diskstats", DISKS),
    _each("disk_write_bytes_per_second", "gauge", "Written to a disk.", ("disk",), _disk_write, "/proc/diskstats", DISKS),
    _each("disk_busy_ratio", "gauge", "Share of time a disk had a request.", ("disk",), _disk_busy, "/proc/diskstats", DISKS),
    _each("network_receive_bytes_per_second", "gauge", "Received on an interface.", ("interface",), _net_in, "/proc/net/dev", NETWORKS),
    _each("network_transmit_bytes_per_second", "gauge", "Sent on an interface.", ("interface",), _net_out, "/proc/net/dev", NETWORKS),
    _of("cgroup_cpu_quota_cores", "gauge", "CPU quota of the container the daemon runs in.", lambda h: h.cgroup.cpu_quota_cores, "cgroup"),
    _of("cgroup_cpu_throttled_ratio", "gauge", "Share of periods in which that quota stopped it.", lambda h: h.cgroup.cpu_throttled_ratio, "cgroup"),
    _of("cgroup_memory_limit_bytes", "gauge", "Memory limit of that container.", lambda h: h.cgroup.memory_limit_bytes, "cgroup"),
    _of("cgroup_memory_used_bytes", "gauge", "Memory in use in that container.", lambda h: h.cgroup.memory_used_bytes, "cgroup"),
)  # fmt: skip
