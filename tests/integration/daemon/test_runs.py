"""A training process, the daemon and its faces: the same run in API, metrics and history."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.conftest import wait_for
from tests.integration.daemon.process import GPUMON, Daemon, clean_environment

TRAINER = """
import sys, time
from array import array
from sdk import ring
from sdk.writer import RingWriter
folder, run, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
import os
meta = {"kind": "trainer", "run": run, "name": "toy", "rank": 0, "world": 1, "pid": os.getpid(),
        "host": "node", "batch_size": 8, "phases": [], "scalars": ["accuracy"], "way": "api", "device": "cpu"}
writer = RingWriter(f"{folder}/{run}.0.ring", meta)
writer.scalars[0] = 0.75
begin = time.monotonic_ns()
for step in range(int(sys.argv[4])):
    time.sleep(pause)
    now = time.monotonic_ns()
    record = array("Q", ring.EMPTY_RECORD)
    record[ring.W_BEGIN], record[ring.W_END] = begin, now
    record[ring.W_SAMPLES] = 8
    record[ring.W_PHASES] = (now - begin) * 3 // 4
    record[ring.W_PHASES + 2] = (now - begin) // 4
    writer.commit(record)
    begin = now
writer.close()
"""


def train(folder: Path, run: str, pause: float, steps: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", TRAINER, str(folder), run, str(pause), str(steps)]
    return subprocess.Popen(command, env=clean_environment(), cwd=Path(__file__).parents[3])


def test_a_run_reaches_every_face_and_survives_a_daemon_restart(tmp_path: Path) -> None:
    rings = tmp_path / "rings"
    with Daemon(tmp_path, "--source", "simulated") as daemon:
        trainer = train(rings, "toy-1", 0.004, 300)
        wait_for(lambda: (daemon.metric("gpumon_rank_steps_total", 'run="toy-1"') or 0) > 20)
        assert daemon.metric("gpumon_run_state", 'run="toy-1"', 'state="running"') == 1
        daemon.stop(signal.SIGKILL)
        assert trainer.wait(20) == 0
    with Daemon(tmp_path, "--source", "simulated") as daemon:
        wait_for(lambda: daemon.metric("gpumon_rank_steps_total", 'run="toy-1"') == 300)
        assert daemon.metric("gpumon_rank_samples_total", 'run="toy-1"') == 2400
        assert daemon.metric("gpumon_rank_lost_records_total", 'run="toy-1"') == 0
        assert daemon.metric("gpumon_rank_step_seconds_count", 'run="toy-1"') == 300
        data = daemon.metric("gpumon_rank_phase_seconds_total", 'run="toy-1"', 'phase="data"') or 0
        forward = daemon.metric("gpumon_rank_phase_seconds_total", 'run="toy-1"', 'phase="forward"') or 1
        assert 2.9 < data / forward < 3.1
        assert daemon.metric("gpumon_rank_scalar", 'scalar="accuracy"') == 0.75
        page = daemon.get("/metrics", Accept="application/openmetrics-text")[2].decode()
        assert 'step="' in page and '# {run="toy-1"' in page
        check_api(daemon)


def check_api(daemon: Daemon) -> None:
    """Runs, one run, its steps in pages, a comparison; and the commands that ask for them."""
    trainer = train(daemon.folder / "rings", "toy-2", 0.002, 300)
    assert trainer.wait(20) == 0
    wait_for(lambda: {row["run"] for row in daemon.json("/api/v1/runs")} == {"toy-1", "toy-2"})
    wait_for(lambda: daemon.json("/api/v1/runs/toy-2")["steps"] == 300)
    first = daemon.json("/api/v1/runs/toy-1/steps?limit=100")
    assert first["step"] == list(range(1, 101)) and len(first["seconds"]) == 100
    rest = daemon.json("/api/v1/runs/toy-1/steps?after=100")
    assert rest["step"][0] == 101 and rest["step"][-1] == 300
    compared = daemon.json("/api/v1/compare?a=toy-1&b=toy-2")
    assert compared["speedup"] > 1.2
    done = subprocess.run(
        [*GPUMON, "runs", "--json", "--connect", f"unix:{daemon.socket}"], capture_output=True, check=True
    )
    assert {row["run"] for row in json.loads(done.stdout)} == {"toy-1", "toy-2"}
