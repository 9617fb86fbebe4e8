"""What is said of containers, pressure, hidden processes and clocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.doctor import machine
from monitor.doctor.check import Context
from tests.unit.doctor.prepared import complains, write


def _group(context: Context, tmp_path: Path, **files: str) -> None:
    write(context.roots.proc / "self/cgroup", f"0::/system.slice/docker-{'ab' * 32}.scope\n")
    group = tmp_path / "cg" / f"system.slice/docker-{'ab' * 32}.scope"
    write(context.roots.proc / "self/mountinfo", f"1 1 0:1 / {tmp_path / 'cg'} rw - cgroup2 cgroup2 rw\n")
    for name, text in files.items():
        write(group / name.replace("__", "."), text)


def test_a_container_with_its_limits(context: Context, tmp_path: Path) -> None:
    _group(context, tmp_path, cpu__max="200000 100000", memory__max=str(4 << 30))
    result = machine.container(context)
    assert result.status == "PASS"
    assert result.detail == "in container abababababab, 2 cores, 4 GiB memory"


@pytest.mark.parametrize(
    ("files", "words"),
    [({"cpu__max": "10000 100000"}, "0.100 cores"), ({"memory__max": str(64 << 20)}, "64 MiB")],
)
def test_a_container_too_small(context: Context, tmp_path: Path, files: dict[str, str], words: str) -> None:
    _group(context, tmp_path, **files)
    complains(machine.container(context), "WARN", words)


def test_a_container_that_sees_only_itself(context: Context, tmp_path: Path) -> None:
    _group(context, tmp_path)
    (context.roots.proc / "self/ns").mkdir()
    (context.roots.proc / "self/ns/pid").symlink_to("pid:[4026532999]")
    complains(machine.container(context), "WARN", "only its own processes")


def test_pressure(context: Context) -> None:
    complains(machine.psi(context), "WARN", "cpu, memory, io")
    for name in ("cpu", "memory", "io"):
        write(context.roots.proc / f"pressure/{name}", "some avg10=0.00\n")
    assert machine.psi(context).status == "PASS"


def test_hidden_processes(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.processes(context).status == "SKIP"
    write(context.roots.proc / "stat", "")
    write(context.roots.proc / "self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw,hidepid=invisible\n")
    monkeypatch.setattr("monitor.doctor.machine.os.geteuid", lambda: 1000)
    complains(machine.processes(context), "WARN", "hidepid")
    monkeypatch.setattr("monitor.doctor.machine.os.geteuid", lambda: 0)
    assert machine.processes(context).status == "PASS"


CLOCKS: dict[str, tuple[str, Callable[..., Any], str, str]] = {
    "never set": ("time.time", lambda: 5.0, "WARN", "wall clock says"),
    "stepped": ("clock_drift", lambda seconds: 0.5, "WARN", "moved apart"),
    "slow": ("clock_cost_ns", lambda: 4000.0, "WARN", "4 µs"),
    "not synchronised": ("kernel_time_state", lambda: (False, 0.0), "WARN", "not synchronised"),
    "synchronised": ("kernel_time_state", lambda: (True, 0.002), "PASS", "offset 2 ms"),
    "unknown": ("kernel_time_state", lambda: None, "PASS", "not known"),
}


@pytest.mark.parametrize("case", CLOCKS)
def test_clocks(context: Context, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    name, answer, status, words = CLOCKS[case]
    monkeypatch.setattr(machine, "clock_cost_ns", lambda: 50.0)
    monkeypatch.setattr(f"monitor.doctor.machine.{name}", answer)
    result = machine.clock(context)
    assert result.status == status, result
    assert words in result.detail


def test_the_real_clock_answers() -> None:
    assert machine.clock_cost_ns() > 0
    assert isinstance(machine.clock_drift(0.01), float)
