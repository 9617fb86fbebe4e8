"""The NVML stand-in reports what the device does."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from tests import device
from tests.conftest import wait_for
from tests.device import Speeds
from tests.nvml.standin import StandIn

CODE = """
import sys, time, torch
x = torch.ones(1 << 20, device="cuda:1"); y = x[:4]
while not sys.stdin.closed:
    for _ in range(20): y = y + 1   # 20 x 5 ms, then as long again nothing
    torch.cuda.synchronize(1); time.sleep(0.1)
"""


def test_utilization_and_memory_come_from_the_timeline() -> None:
    with StandIn(gpus=2) as nvml:
        env = {**device.environment(Speeds(kernels_us={"add": 5000})), **nvml.environment()}
        command = [sys.executable, "-c", textwrap.dedent(CODE)]
        child = subprocess.Popen(command, env=env, stdin=subprocess.PIPE)
        try:
            idle, busy = nvml.gpu(0).reading, nvml.gpu(1).reading
            wait_for(lambda: busy("memory_total") == 16 << 30 and busy("utilization") > 0)
            assert busy("utilization") <= 100
            assert 4 << 20 <= busy("memory_used") < 1 << 30
            assert idle("utilization") == 0
        finally:
            child.kill()
            child.wait()
