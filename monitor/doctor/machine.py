"""Checks of the machine itself: container limits, visibility of processes, clocks, pressure."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

from monitor.doctor.check import Context, Result, check, passed, skipped, warned
from monitor.host.cgroup import CgroupReader
from monitor.host.identity import find_container, find_mounted_container, find_pod
from monitor.host.procfs import read_text
from monitor.model.host import Cgroup
from monitor.model.units import number, seconds, size

INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's fixed number for the machine's own pid namespace."""
OLDEST_WALL_TIME = 1_704_067_200
"""2024-01-01: a clock before that has not been set."""
SLOW_CLOCK_NS = 1000
"""Reading a clock takes tens of nanoseconds; a microsecond means a system call."""
SMALL_MEMORY = 256 << 20
"""Chosen: enough for a daemon with many runs."""
DRIFT_SECONDS = 0.05
"""How long to watch the two clocks."""
NO_NAME = "(no id visible)"


@check("container", "container limits, and whether processes outside are seen")
def container(context: Context) -> Result:
    groups = read_text(context.roots.proc / "self/cgroup") or ""
    limits = CgroupReader(context.roots).read(groups, time.monotonic())
    name = own_container(context, groups)
    facts = {
        "container": name,
        "cpu_quota_cores": limits.cpu_quota_cores,
        "memory_limit_bytes": limits.memory_limit_bytes,
    }
    tight = _tight(limits)
    if tight:
        return warned(tight, "give gpumon at least half a core and 256 MiB", **facts)
    if name and not sees_all_processes(context):
        return warned(
            f"in container {short(name)} with a pid namespace of its own: only its own processes are seen",
            "docker: --pid=host; Kubernetes: hostPID: true; and share the ring directory as a volume",
            **facts,
        )
    return passed(f"{f'in container {short(name)}' if name else 'no container'}, {describe(limits)}", **facts)


def _tight(limits: Cgroup) -> str | None:
    if limits.cpu_quota_cores is not None and limits.cpu_quota_cores < 0.5:
        return f"the CPU quota is {number(limits.cpu_quota_cores)} cores: ticks may come late"
    if limits.memory_limit_bytes is not None and limits.memory_limit_bytes < SMALL_MEMORY:
        return f"the memory limit is {size(limits.memory_limit_bytes)}"
    return None


def describe(limits: Cgroup) -> str:
    quota, memory = limits.cpu_quota_cores, limits.memory_limit_bytes
    parts = [f"{number(quota)} cores" if quota is not None else None]
    parts.append(f"{size(memory)} memory" if memory is not None else None)
    return ", ".join(part for part in parts if part) or "no CPU or memory limit"


def short(name: str) -> str:
    """Ids as the container runtimes show them."""
    return name[:12] if len(name) == 64 else name


def own_container(context: Context, groups: str) -> str | None:
    """Our container's id, or at least that there is one."""
    mounts = read_text(context.roots.proc / "self/mountinfo") or ""
    found = find_container(groups) or find_pod(groups) or find_mounted_container(mounts)
    if found:
        return found
    marked = os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
    return NO_NAME if marked else None


def sees_all_processes(context: Context) -> bool:
    try:
        return os.readlink(context.roots.proc / "self/ns/pid") == INITIAL_PID_NAMESPACE
    except OSError:
        return True


@check("processes", "readings of other users' processes")
def processes(context: Context) -> Result:
    if not context.roots.available():
        return skipped("no /proc on this system")
    mounts = read_text(context.roots.proc / "self/mountinfo") or ""
    options = next((line for line in mounts.splitlines() if " - proc " in line), "")
    if os.geteuid() == 0:
        return passed("root: everything is readable")
    if "hidepid=" in options and "hidepid=0" not in options:
        return warned(
            "/proc hides other users' processes (hidepid)",
            "run the daemon in the group named by /proc's gid= option, or as root",
        )
    return passed("other users' CPU and memory are readable; their I/O needs root or CAP_SYS_PTRACE")


@check("psi", "pressure stall information of the kernel")
def psi(context: Context) -> Result:
    if not sys.platform.startswith("linux"):
        return skipped("Linux only")
    directory = context.roots.proc / "pressure"
    missing = [name for name in ("cpu", "memory", "io") if not read_text(directory / name)]
    if missing:
        return warned(
            f"no pressure readings for {', '.join(missing)}",
            "boot with psi=1 (kernel 4.20 or newer with CONFIG_PSI); gpumon works without it",
        )
    return passed("cpu, memory and io pressure are readable")


@check("clock", "clocks run forward, are cheap to read, and are synchronised")
def clock(context: Context) -> Result:
    cost = round(clock_cost_ns())
    facts: dict[str, Any] = {"read_ns": cost, "source": _clock_source(context), "offset_seconds": None}
    if time.time() < OLDEST_WALL_TIME:
        return warned(f"the wall clock says {time.ctime()}", "set it: timedatectl set-ntp true", **facts)
    drift = clock_drift(DRIFT_SECONDS)
    if abs(drift) > 0.01:
        return warned(
            f"wall and monotonic clock moved apart by {seconds(abs(drift))} in {seconds(DRIFT_SECONDS)}",
            "something steps the clock: use one time service only (chrony or systemd-timesyncd)",
            **facts,
        )
    if cost > SLOW_CLOCK_NS:
        return warned(
            f"reading the clock costs {seconds(cost / 1e9)} (clock source {facts['source']})",
            "boot with clocksource=tsc; every stamp in a training step pays this",
            **facts,
        )
    return _synchronised(facts)


def _synchronised(facts: dict[str, Any]) -> Result:
    cheap = f"{seconds(facts['read_ns'] / 1e9)} a reading"
    state = kernel_time_state()
    if state is None:
        return passed(f"{cheap}; synchronisation not known", **facts)
    synchronised, facts["offset_seconds"] = state
    if not synchronised:
        return warned(
            "the wall clock is not synchronised: times of several hosts cannot be compared",
            "run a time service: chrony or systemd-timesyncd",
            **facts,
        )
    return passed(f"{cheap}; synchronised, offset {seconds(abs(state[1]))}", **facts)


def clock_drift(span: float) -> float:
    """How far the two clocks drift apart in a short time: 0 on a sane machine."""
    wall, mono = time.time(), time.monotonic()
    time.sleep(span)
    return (time.time() - wall) - (time.monotonic() - mono)


def clock_cost_ns(reads: int = 2000) -> float:
    read = time.monotonic_ns
    begin = read()
    for _ in range(reads):
        read()
    return (read() - begin) / reads


def _clock_source(context: Context) -> str | None:
    text = read_text(context.roots.sys / "devices/system/clocksource/clocksource0/current_clocksource")
    return text.strip() if text else None


class _Timex(ctypes.Structure):
    """The head of Linux's ``struct timex``; the rest is only room for the kernel to write into."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 32),
    )


def kernel_time_state() -> tuple[bool, float] | None:
    """Whether the kernel's clock is synchronised, and its offset in seconds; None if it does not say."""
    if not sys.platform.startswith("linux"):
        return None
    unsynchronised, in_nanoseconds = 0x40, 0x2000
    state = _Timex()
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(state)) < 0:
        return None
    unit = 1e-9 if state.status & in_nanoseconds else 1e-6
    return not state.status & unsynchronised, state.offset * unit
