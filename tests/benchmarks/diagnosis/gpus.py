"""GPU-side causes, with the steerable NVML stand-in: is each named, and nothing on a healthy card?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.nvml.standin import Proc, StandIn

GIB = 1 << 30
CLEAN = {
    "utilization": 86,
    "memory_used": 40 * GIB,
    "memory_total": 80 * GIB,
    "throttle": 0,
    "sm_clock": 1960,
    "pcie_generation": 5,
    "pcie_replays": 0,
    "ecc_corrected_volatile": 0,
    "ecc_uncorrected_volatile": 0,
    "remapped_corrected": 0,
    "remapped_uncorrected": 0,
    "retired_single": 0,
    "retired_double": 0,
}
CONFIG: dict[str, Any] = {"precision": {"autocast": True}, "model": {"dtype": "torch.float32"}}

Steer = Callable[[StandIn], None]
CASES: dict[str, tuple[str, Steer, dict[str, Any]]] = {
    "healthy": ("", lambda nvml: None, {}),
    "thermal throttling": (
        "device.thermal_throttle",
        lambda nvml: nvml.gpu(0).set(throttle=0x40, temperature=91, sm_clock=1200),
        {},
    ),
    "power limit": ("device.power_throttle", lambda nvml: nvml.gpu(0).set(throttle=0x4, sm_clock=1300), {}),
    "power brake": (
        "device.hardware_slowdown",
        lambda nvml: nvml.gpu(0).set(throttle=0x80, sm_clock=400),
        {},
    ),
    "low clocks": ("device.clocks_low", lambda nvml: nvml.gpu(0).set(throttle=0x2, sm_clock=1000), {}),
    "PCIe link narrow": ("transfer.pcie_degraded", lambda nvml: nvml.gpu(0).set(pcie_width=4), {}),
    "ECC errors": ("device.memory_errors", lambda nvml: nvml.gpu(0).set(ecc_uncorrected_volatile=3), {}),
    "remapping pending": ("device.memory_errors", lambda nvml: nvml.gpu(0).set(remapped_pending=1), {}),
    "lost GPU": ("device.lost", lambda nvml: nvml.gpu(1).lose(), {}),
    "shared GPU": (
        "device.shared",
        lambda nvml: nvml.gpu(0).processes(Proc(pid=1, memory=9 * GIB, sm=45)),
        {},
    ),
    "memory nearly full": ("memory.device_full", lambda nvml: nvml.gpu(0).set(memory_used=78 * GIB), {}),
    "allocator retries": (
        "memory.allocator_retries",
        lambda nvml: None,
        {"scalars": {"cuda.alloc_retries": 7.0}},
    ),
    "AMP off": ("compute.amp_off", lambda nvml: None, {"precision": {"autocast": False}}),
}


def gpu_results() -> dict[str, dict[str, Any]]:
    """Case → expected id, what was found, and whether it was named (nothing, for the healthy card)."""
    results = {}
    for name, (expected, steer, config) in CASES.items():
        found = run_case(steer, {**CONFIG, **config})
        serious = [entry for entry in found if entry[1] in ("warning", "critical")]
        named = not serious if not expected else any(entry[0] == expected for entry in serious)
        results[name] = {"expected": expected, "found": found, "named": named}
        print(f"{'ok  ' if named else 'MISS'} GPU: {name:<22}{expected}", flush=True)
    return results


def run_case(steer: Steer, config: dict[str, Any]) -> list[list[str]]:
    with StandIn(gpus=2) as nvml, tempfile.TemporaryDirectory(prefix="gpumon-gpu-case-") as folder:
        for index in range(2):
            nvml.gpu(index).set(**CLEAN)
        steer(nvml)
        command = [sys.executable, "-m", "tests.benchmarks.diagnosis.gpu_child", folder, nvml.gpu(0).uuid]
        done = subprocess.run(
            [*command, json.dumps(config)],
            env={**os.environ, **nvml.environment()},
            capture_output=True,
            text=True,
            timeout=60,
            cwd=Path(__file__).parents[3],
            check=True,
        )
    answer: list[list[str]] = json.loads(done.stdout.splitlines()[-1])["findings"]
    return answer
