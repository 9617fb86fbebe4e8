"""`gpumon doctor` as a user runs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from monitor.doctor.check import all_checks
from tests.conftest import PATIENCE, wait_for


def doctor(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GPUMON_")}
    return subprocess.run(
        [sys.executable, "-m", "monitor.cli.main", "doctor", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**clean, **environ},
    )


def checks(answer: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {item["id"]: item for item in json.loads(answer.stdout)["checks"]}


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """A healthy set-up that touches nothing of the machine's own."""
    return [
        f"--dir={tmp_path / 'rings'}",
        f"--store={tmp_path / 'history.db'}",
        "--listen=127.0.0.1:0",
    ]


def test_a_healthy_machine_without_gpu(options: list[str]) -> None:
    answer = doctor("--json", *options)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    document = json.loads(answer.stdout)
    assert document["ok"] is True
    assert sum(document["counts"].values()) == len(document["checks"])
    found = checks(answer)
    assert list(found) == [item.id for item in all_checks()]
    assert found["ring-directory"]["status"] == "PASS"
    for item in document["checks"]:
        assert bool(item["remedy"]) == (item["status"] in ("WARN", "FAIL")), item


def test_the_text_is_readable_without_colour(options: list[str]) -> None:
    answer = doctor(*options)
    assert "\x1b" not in answer.stdout
    lines = answer.stdout.splitlines()
    assert all(len(line) <= 100 or max(map(len, line.split())) > 50 for line in lines), "a path is one word"
    assert lines[-1].startswith(f"{len(all_checks())} check(s): ")
    assert all(line[:4] in ("PASS", "WARN", "FAIL", "SKIP", "    ", "") for line in lines[:-1])
    assert answer.stderr == ""


def test_an_unusable_directory_fails_with_a_remedy(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = doctor("--json", *options, f"--dir={tmp_path / 'file'}")
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["ok"] is False
    found = checks(answer)["ring-directory"]
    assert found["status"] == "FAIL"
    assert "--dir" in found["remedy"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_directory_of_somebody_else_is_not_writable(tmp_path: Path) -> None:
    """As an ordinary user, in a directory of root's. Python's own files may be root's too, so what is needed
    of them is imported first."""
    closed = Path("/dev/shm") / f"gpumon-test-{os.getpid()}"
    closed.mkdir(mode=0o755)
    code = (
        "import os, sys; from monitor.cli.main import main; from monitor.doctor.check import all_checks\n"
        "import tomllib, monitor.cli.doctor\n"
        "all_checks(); os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        f"options = ['--json', '--only=ring-directory', '--dir', {str(closed)!r}, '--config=/dev/null']\n"
        "sys.exit(main(['doctor', *options]))"
    )
    try:
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE
        )
    finally:
        closed.rmdir()
    assert answer.returncode == 1, answer.stderr
    assert "permission denied" in checks(answer)["ring-directory"]["detail"]


def test_a_busy_port_fails_and_names_the_owner(options: list[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(8)
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        answer = doctor("--json", "--only", "port", *options, f"--listen={address}")
    assert answer.returncode == 1
    found = checks(answer)
    assert list(found) == ["port"]
    assert str(os.getpid()) in found["port"]["detail"]


def test_a_running_daemon_is_recognised_on_port_and_socket(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--dir={tmp_path}", f"--listen=127.0.0.1:{port}", "--store=none"]
    daemon = subprocess.Popen(
        [sys.executable, "-m", "monitor.cli.main", "daemon", "--source=simulated", "--gpus=2", *options],
        stderr=subprocess.DEVNULL,
    )
    try:
        answer = wait_for(lambda: _with_daemon(options, daemon))
    finally:
        daemon.terminate()
        daemon.wait(timeout=PATIENCE)
    found = checks(answer)
    assert answer.returncode == 0, answer.stdout
    assert found["daemon"]["facts"]["gpus"] == 2
    assert found["port"]["facts"]["daemon"] is True
    assert found["socket"]["facts"]["daemon"] is True


def _with_daemon(
    options: list[str], daemon: subprocess.Popen[bytes]
) -> subprocess.CompletedProcess[str] | None:
    assert daemon.poll() is None, "the daemon has ended"
    answer = doctor("--json", "--only=port", "--only=socket", "--only=daemon", *options)
    return answer if checks(answer)["daemon"]["status"] == "PASS" else None


def test_a_daemon_that_was_asked_for_and_is_not_there(options: list[str]) -> None:
    answer = doctor("--json", *options, "--connect", "http://127.0.0.1:1")
    assert answer.returncode == 1
    assert checks(answer)["daemon"]["status"] == "FAIL"


def test_options_come_from_the_environment_too(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    answer = doctor("--json", "--only=ring-directory", GPUMON_DIR=str(tmp_path / "file"))
    assert checks(answer)["ring-directory"]["status"] == "FAIL"


def test_an_unknown_check_is_one_sentence() -> None:
    answer = doctor("--only", "nonsense")
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith("gpumon: there is no check 'nonsense'")
    assert "hint: checks are: python" in answer.stderr


def test_torch_is_not_loaded_into_the_command(options: list[str]) -> None:
    code = (
        "import sys; from monitor.cli.main import main\n"
        f"main(['doctor', '--json', *{options!r}])\n"
        "assert not {'torch', 'textual', 'pynvml'} & set(sys.modules), 'loaded'"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.slow
def test_deep_starts_torch_in_a_process_of_its_own() -> None:
    pytest.importorskip("torch")
    answer = doctor("--json", "--deep", "--only=torch")
    assert checks(answer)["torch"]["facts"]["available"] in (True, False)
