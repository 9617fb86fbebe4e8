"""The real daemon on the NVML stand-in: everything it reads, and what happens if a driver misbehaves."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.web.families.gpu import FAMILIES
from tests.conftest import require_program, wait_for
from tests.integration.daemon.process import Daemon
from tests.nvml.standin import MigSlice, Proc, StandIn
from tests.unit.web.test_metrics import check_golden

VARYING = re.compile(
    r"gpumon_gpu_(energy_joules_total|reading_age_seconds|reading_m..|xid_last_timestamp_seconds|nvlink_\w*(per_second|bytes_total)"
    r"|pcie_\w+_per_second|graphics_active|fp\d\d_active|sm_active|sm_occupancy|tensor_active|dram_active)"
)


@pytest.fixture
def nvml() -> Iterator[StandIn]:
    require_program("cc")
    with StandIn(gpus=8) as standin:
        yield standin


def test_golden_page_of_eight_gpus(nvml: StandIn, tmp_path: Path) -> None:
    nvml.gpu(0).set(temperature=84, throttle=0x40)
    nvml.gpu(1).absent("fan", "power")
    nvml.gpu(2).processes(Proc(pid=1, memory=6 << 30, sm=55))
    nvml.gpu(3).mig(MigSlice(gi=1, used=1 << 30))
    nvml.gpu(5).set(vgpus=2, license=5)
    with Daemon(tmp_path, "--source", "nvml", environment=nvml.environment()) as daemon:
        nvml.xid(4, 79)
        wait_for(lambda: whole(daemon.get("/metrics")[2].decode()))
        page = daemon.get("/metrics")[2].decode()
        promtool = require_program("promtool")
        checked = subprocess.run([promtool, "check", "metrics"], input=page, text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    check_golden("metrics.standin8.txt", "".join(map(_steady, page.splitlines(keepends=True))))


def whole(page: str) -> bool:
    """Whether every GPU family is there, including those read less often, for the last GPU too."""
    seen = [line for line in page.splitlines() if line.startswith("gpumon_gpu_")]
    names = {line.partition("{")[0] for line in seen}
    slow = "gpumon_gpu_pcie_transmit_bytes_per_second", "gpumon_gpu_nvlink_receive_bytes_per_second"
    last = {line.partition("{")[0] for line in seen if 'gpu="7"' in line}
    return {family.name for family in FAMILIES} <= names and set(slow) <= last


def _steady(line: str) -> str:
    """GPU lines without the values that depend on time; everything else is dropped."""
    if not line.startswith(("gpumon_gpu_", "gpumon_source_")) or line.startswith("gpumon_gpu_process_"):
        return ""
    return line.rpartition(" ")[0] + " …\n" if VARYING.match(line) else line


def test_a_lost_gpu_costs_nobody_else_and_comes_back(nvml: StandIn, tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "nvml", environment=nvml.environment()) as daemon:
        nvml.gpu(2).lose()
        wait_for(lambda: daemon.metric("gpumon_gpu_up", 'gpu="2"') == 0)
        assert daemon.metric("gpumon_gpu_state", 'gpu="2"', 'state="lost"') == 1
        assert daemon.metric("gpumon_gpu_utilization_ratio", 'gpu="2"') is None
        assert daemon.metric("gpumon_gpu_up", 'gpu="3"') == 1
        assert daemon.get("/-/ready")[0] == 200, "seven GPUs still answer"
        nvml.gpu(2).find()
        wait_for(lambda: daemon.metric("gpumon_gpu_up", 'gpu="2"') == 1)


def test_one_hung_gpu_does_not_hold_the_others_up(nvml: StandIn, tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "nvml", environment=nvml.environment()) as daemon:
        nvml.gpu(5).hang()
        wait_for(lambda: daemon.metric("gpumon_gpu_state", 'gpu="5"', 'state="hung"') == 1)
        before = daemon.metric("gpumon_snapshots_total") or 0
        wait_for(lambda: (daemon.metric("gpumon_snapshots_total") or 0) >= before + 3)
        assert daemon.metric("gpumon_gpu_up", 'gpu="0"') == 1
        nvml.gpu(5).unhang()
        wait_for(lambda: daemon.metric("gpumon_gpu_up", 'gpu="5"') == 1)


def test_a_hung_driver_is_said_by_readiness_and_metrics_and_recovers(nvml: StandIn, tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "nvml", environment=nvml.environment()) as daemon:
        nvml.hang()
        wait_for(lambda: daemon.get("/-/ready")[0] == 503)
        status, _, body = daemon.get("/metrics")
        assert status == 200, "answered while the driver hangs"
        assert b"gpumon_host_memory_total_bytes" in body
        assert daemon.json("/-/ready")["error"]
        assert daemon.get("/-/healthy")[0] == 200
        nvml.unhang()
        wait_for(lambda: daemon.get("/-/ready")[0] == 200)


def test_it_ends_even_while_the_driver_hangs(nvml: StandIn, tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "nvml", environment=nvml.environment()) as daemon:
        nvml.hang()
        wait_for(lambda: daemon.get("/-/ready")[0] == 503)
        assert daemon.stop() == 0


def test_a_driver_reload_is_survived(nvml: StandIn, tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "nvml", environment=nvml.environment()) as daemon:
        nvml.unload()
        wait_for(lambda: daemon.get("/-/ready")[0] == 503)
        nvml.load()
        wait_for(lambda: daemon.get("/-/ready")[0] == 200)
        assert daemon.metric("gpumon_gpu_up", 'gpu="7"') == 1
