"""What the machine reports about itself: cores, memory, disks, network, limits, processes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Pressure(Struct, frozen=True):
    """Linux PSI: share of the last 10 s in which some / all tasks waited, and the cumulative counters."""

    some_ratio: float | None = None
    full_ratio: float | None = None
    some_seconds: float | None = None
    full_seconds: float | None = None


class Cpu(Struct, frozen=True):
    cores: int
    utilization_ratio: float | None = None
    per_core_ratio: tuple[float, ...] = ()
    user_ratio: float | None = None
    system_ratio: float | None = None
    iowait_ratio: float | None = None
    steal_ratio: float | None = None
    load_1m: float | None = None
    load_5m: float | None = None
    load_15m: float | None = None
    frequency_hertz: float | None = None
    pressure: Pressure = Pressure()


class Memory(Struct, frozen=True):
    total_bytes: int
    available_bytes: int
    used_bytes: int
    cached_bytes: int | None = None
    shared_bytes: int | None = None
    swap_total_bytes: int | None = None
    swap_used_bytes: int | None = None
    swap_in_bytes_per_second: float | None = None
    swap_out_bytes_per_second: float | None = None
    pressure: Pressure = Pressure()

    @property
    def used_ratio(self) -> float | None:
        return self.used_bytes / self.total_bytes if self.total_bytes else None


class Disk(Struct, frozen=True):
    name: str
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    busy_ratio: float | None = None
    rotational: bool | None = None


class Network(Struct, frozen=True):
    name: str
    receive_bytes_per_second: float | None = None
    transmit_bytes_per_second: float | None = None


class Cgroup(Struct, frozen=True):
    """Limits of the container the daemon (or a training process) runs in; None: no limit."""

    cpu_quota_cores: float | None = None
    cpu_throttled_ratio: float | None = None
    memory_limit_bytes: int | None = None
    memory_used_bytes: int | None = None


class Host(Struct, frozen=True):
    hostname: str
    kernel: str | None = None
    boot_time: float | None = None
    cpu: Cpu | None = None
    memory: Memory | None = None
    disks: tuple[Disk, ...] = ()
    networks: tuple[Network, ...] = ()
    io_pressure: Pressure = Pressure()
    cgroup: Cgroup = Cgroup()
    shm_free_bytes: int | None = None
    disk_read_bytes_per_second: float | None = None
    """All disks together. Computed by `monitor.model.row_facts`, like the fields below."""
    disk_write_bytes_per_second: float | None = None
    receive_bytes_per_second: float | None = None
    """All networks together."""
    transmit_bytes_per_second: float | None = None


class Process(Struct, frozen=True):
    """A training process, one of its children (a DataLoader worker), or a process on a GPU."""

    pid: int
    parent: int | None = None
    role: Literal["trainer", "worker", "gpu", "other"] = "other"
    name: str | None = None
    command: str | None = None
    """Without its secrets; also None for viewers who may not see it."""
    user: str | None = None
    owner_uid: int | None = None
    cpu_ratio: float | None = None
    """In cores: 1.0 is one core fully used."""
    rss_bytes: int | None = None
    threads: int | None = None
    read_bytes_per_second: float | None = None
    write_bytes_per_second: float | None = None
    io_wait_ratio: float | None = None
    started: float | None = None
    container: str | None = None
    pod: str | None = None
    slurm_job: str | None = None
    cgroup: Cgroup = Cgroup()
    run: str | None = None
    rank: int | None = None
    namespace: str | None = None
    """Of the pod."""
    container_name: str | None = None
    """Only where the runtime's files are readable; ``container`` is its id."""

    gpu_uuids: tuple[str, ...] = ()
    """GPUs the driver lists it on. Computed by `monitor.model.row_facts`, like the fields below."""
    gpu_indices: tuple[int, ...] = ()
    gpu_memory_bytes: int | None = None
    """Device memory it holds, over all of them."""
    gpu_sm_ratio: float | None = None
    """SM use on the GPU it uses most."""
    run_label: str | None = None
    """Its run by name, with its rank when the run has several: "resnet", "llama r3"."""
    age_seconds: float | None = None
