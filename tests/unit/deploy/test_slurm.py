"""Slurm's hooks, actually executed: they do their part and can never fail (that would drain the node)."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.host.job_files import JobFiles
from tests.conftest import PATIENCE

SLURM = Path(__file__).resolve().parents[3] / "deploy" / "slurm"
SCRIPTS = sorted(SLURM.glob("*.sh"))


def execute(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {"PATH": os.environ["PATH"], **environment}
    return subprocess.run([SLURM / script], env=kept, capture_output=True, text=True, timeout=PATIENCE)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_scripts_are_plain_shell_and_executable(script: Path) -> None:
    assert script.stat().st_mode & stat.S_IXUSR and script.read_text().startswith("#!/bin/sh\n")
    assert subprocess.run(["sh", "-n", script]).returncode == 0
    assert script.read_text().rstrip().endswith("exit 0")


def test_the_prolog_makes_the_folder_once(tmp_path: Path) -> None:
    folder = tmp_path / "rings"
    assert execute("prolog.sh", GPUMON_DIR=str(folder)).returncode == 0
    if os.getuid() == 0:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o3773
    folder.chmod(0o700)
    assert execute("prolog.sh", GPUMON_DIR=str(folder)).returncode == 0
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700, "an existing folder is left alone"


def test_the_prolog_never_fails() -> None:
    assert execute("prolog.sh", GPUMON_DIR="/proc/nowhere/rings").returncode == 0


def test_the_task_prolog_names_the_run_like_the_job() -> None:
    assert (
        execute("task_prolog.sh", SLURM_JOB_NAME="bert large; rm").stdout
        == "export GPUMON_RUN_NAME=bert-large--rm\n"
    )
    assert execute("task_prolog.sh", SLURM_JOB_NAME="bert", GPUMON_RUN_NAME="mine").stdout == ""
    assert execute("task_prolog.sh").stdout == ""


def test_the_daemon_is_told_which_job_has_which_gpu(tmp_path: Path) -> None:
    own = {"GPUMON_DIR": str(tmp_path / "rings"), "GPUMON_GPU_JOBS": str(tmp_path / "jobs")}
    execute("prolog.sh", SLURM_JOB_ID="42", SLURM_JOB_GPUS="0,3", **own)
    execute("prolog.sh", SLURM_JOB_ID="421", SLURM_JOB_GPUS="3", **own)
    execute("prolog.sh", SLURM_JOB_ID="43", **own)
    assert JobFiles(tmp_path / "jobs").jobs(0.0) == {"nvidia0": ("42",), "nvidia3": ("42", "421")}
    execute("epilog.sh", SLURM_JOB_ID="42", **own)
    assert JobFiles(tmp_path / "jobs").jobs(0.0) == {"nvidia3": ("421",)}


def test_the_epilog_logs_the_runs_of_its_job_only(tmp_path: Path) -> None:
    runs = [{"run": "a", "state": "ended", "steps": 7, "slurm_job": "42"}, {"run": "b", "slurm_job": "43"}]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    program = tmp_path / "gpumon"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/runs.json\n")
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "s"))
        own = {"GPUMON_BIN": str(program), "GPUMON_SOCKET": str(tmp_path / "s"), "GPUMON_LOGGER": "echo"}
        done = execute("epilog.sh", SLURM_JOB_ID="42", GPUMON_PYTHON=sys.executable, **own)
    assert done.returncode == 0 and done.stdout.count("\n") == 1
    assert json.loads(done.stdout.removeprefix("job 42 "))["run"] == "a"


def test_the_epilog_without_a_daemon_is_silent() -> None:
    done = execute("epilog.sh", SLURM_JOB_ID="42", GPUMON_BIN="/nowhere/gpumon")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_fields_the_epilog_reads_exist() -> None:
    from monitor.catalog.rows import RunRow

    assert {"run", "state", "steps", "samples_per_s", "gpus", "findings", "slurm_job"} <= set(
        RunRow.__struct_fields__
    )
