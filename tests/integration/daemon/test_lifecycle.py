"""Starting, being second, being killed, shutting down: with real processes and real signals."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from monitor.client import Client
from monitor.model.snapshot import decode
from tests.conftest import PATIENCE, wait_for
from tests.integration.daemon.process import GPUMON, Daemon, clean_environment


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_streams_open(tmp_path: Path, number: int) -> None:
    with Daemon(tmp_path, "--source", "simulated") as daemon:
        streams = [Client(daemon.url).stream(reconnect=False), daemon.client().stream(reconnect=False)]
        for stream in streams:
            next(stream)
        idle = socket.create_connection(("127.0.0.1", daemon.port))
        assert daemon.stop(number) == 0
        idle.close()
    assert not daemon.socket.exists()
    assert "Traceback" not in daemon.log


def test_the_second_on_the_same_directory_port_or_socket_is_told_who_has_it(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "none") as first:
        assert first.process is not None
        other = tmp_path / "other"
        cases = {
            "the directory": ["--dir", str(tmp_path / "rings"), "--listen", "none", "--socket", "none"],
            f"127.0.0.1:{first.port}": ["--dir", str(other), "--listen", f"127.0.0.1:{first.port}"],
            "the socket": ["--dir", str(other), "--listen", "none", "--socket", str(first.socket)],
        }
        for what, options in cases.items():
            done = subprocess.run(
                [*GPUMON, "daemon", "--source", "none", "--store", "none", *options],
                env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
            assert done.returncode == 4, done.stderr
            assert what in done.stderr
            assert f"is in use by another gpumon daemon (pid {first.process.pid})" in done.stderr
        assert first.get("/-/healthy")[0] == 200
        assert first.client().snapshot().seq > 0, "the first one's socket must still be there"


def test_what_a_killed_daemon_left_behind_is_cleaned(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "none") as first:
        assert first.process is not None
        first.process.kill()
        first.process.wait()
    assert first.socket.exists()
    with Daemon(tmp_path, "--source", "none") as second:
        assert second.client().snapshot().seq > 0


def test_a_client_follows_a_daemon_through_its_restart(tmp_path: Path) -> None:
    seen: list[int] = []
    stop = threading.Event()

    def follow() -> None:
        for snapshot in Client(f"unix:{tmp_path}/gpumon.sock").stream():
            seen.append(snapshot.seq)
            if stop.is_set():
                return

    with Daemon(tmp_path, "--source", "none") as first:
        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        wait_for(lambda: len(seen) >= 2)
        first.stop()
    with Daemon(tmp_path, "--source", "none"):
        before = len(seen)
        wait_for(lambda: len(seen) >= before + 2)
        stop.set()
        thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--interval", "fast"], "--interval: 'fast' is not of the form"),
        (["--source", "magic"], "--source: 'magic' must be one of"),
        (["--listen", "nowhere"], "--listen: 'nowhere' is not of the form HOST:PORT"),
        (["--scenario", "/tmp/x.toml"], "a scenario only steers the simulated source"),
        (["--config", "/none/config.toml"], "cannot read the config file /none/config.toml"),
        (["--policy", "/none/policy.toml"], "cannot read the policy file"),
        (["--listen", "203.0.113.7:10835"], "cannot listen on 203.0.113.7:10835"),
        (["--web-config", "/none/web.yml"], "cannot read the web-config file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path: Path, options: list[str], sentence: str) -> None:
    base = ["--dir", str(tmp_path), "--store", "none"]
    done = subprocess.run(
        [*GPUMON, "daemon", *base, *options],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert sentence in done.stderr and "Traceback" not in done.stderr


def test_without_nvml_it_says_why_and_watches_the_host(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--source", "auto") as daemon:
        snapshot = daemon.client().snapshot()
        if snapshot.source.kind == "nvml":
            pytest.skip("this machine has a GPU")
        assert "the host alone, no GPU:" in daemon.log
        assert snapshot.source.detail and snapshot.host.memory is not None
        assert daemon.get("/-/ready")[0] == 200


def test_status_without_a_daemon_reads_by_itself_and_says_so(tmp_path: Path) -> None:
    environment = clean_environment(GPUMON_DIR=str(tmp_path), GPUMON_LISTEN="127.0.0.1:9")
    done = subprocess.run([*GPUMON, "status"], env=environment, capture_output=True, text=True, check=True)
    assert "read now, no daemon" in done.stdout
    answer = subprocess.run(
        [*GPUMON, "status", "--json", "--source", "simulated"],
        env=environment,
        capture_output=True,
        check=True,
    )
    snapshot = decode(answer.stdout)
    assert snapshot.seq == 2 and snapshot.gpus[0].simulated
    assert snapshot.host.cpu and snapshot.host.cpu.utilization_ratio is not None, "rates need two readings"


def test_systemd_is_told_when_it_is_ready_and_gets_priorities(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(10)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "JOURNAL_STREAM": "8:1"}
        with Daemon(tmp_path, "--source", "none", environment=environment) as daemon:
            assert channel.recv(4096).startswith(b"READY=1\nSTATUS=")
            assert daemon.log.startswith("<6>gpumon ")
            daemon.stop()
            assert channel.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize(("options", "mode"), [((), 0o600), (("--socket-mode", "0666"), 0o666)])
def test_the_socket_is_for_its_user_only_unless_told(
    tmp_path: Path, options: tuple[str, ...], mode: int
) -> None:
    with Daemon(tmp_path, "--source", "none", *options) as daemon:
        assert os.stat(daemon.socket).st_mode & 0o777 == mode
