"""Signals reach the process that was meant, and no other."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from monitor.model.errors import UserError
from monitor.tui.signals import CHOICES, Target, environment, send
from tests.conftest import wait_for

HERE = socket.gethostname()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline()
    yield process
    process.kill()
    process.wait(10)
    process.stdout.close()


@pytest.mark.parametrize("name", list(CHOICES))
def test_a_signal_arrives(child: subprocess.Popen[bytes], name: str) -> None:
    target = Target(child.pid, psutil.Process(child.pid).create_time(), HERE, "python")
    assert send(target, name) is None
    child.wait(10)
    assert child.returncode in (-getattr(signal, name), 1, 130)


def test_a_reused_pid_is_left_alone(child: subprocess.Popen[bytes]) -> None:
    target = Target(child.pid, psutil.Process(child.pid).create_time() - 3600, HERE, "python")
    problem = send(target, "SIGKILL")
    assert problem and "another process" in problem
    assert child.poll() is None


def test_without_a_start_time_nothing_is_sent(child: subprocess.Popen[bytes]) -> None:
    assert send(Target(child.pid, None, HERE, "python"), "SIGKILL")
    assert child.poll() is None


def test_another_machine_is_out_of_reach(child: subprocess.Popen[bytes]) -> None:
    problem = send(Target(child.pid, time.time(), "elsewhere", "python"), "SIGTERM")
    assert problem and "elsewhere" in problem and child.poll() is None


def test_a_process_that_has_ended_is_told(child: subprocess.Popen[bytes]) -> None:
    started = psutil.Process(child.pid).create_time()
    child.kill()
    child.wait(10)
    problem = send(Target(child.pid, started, HERE, "python"), "SIGTERM")
    assert problem and "ended" in problem


def test_the_environment_of_a_process_without_its_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("WANDB_API_KEY", "very-secret")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        target = Target(child.pid, psutil.Process(child.pid).create_time(), HERE, "python")
        wait_for(lambda: psutil.Process(child.pid).cmdline()[1:] == ["-c", "input()"])
        found = environment(target)
        assert found["CUDA_VISIBLE_DEVICES"] == "2,3" and found["WANDB_API_KEY"] == "***"
        with pytest.raises(UserError, match="another process"):
            environment(Target(child.pid, 1.0, HERE, "python"))
    finally:
        child.communicate(b"\n")
