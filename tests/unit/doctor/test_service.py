"""What is said of the port, the socket and the daemon behind them."""

from __future__ import annotations

import os
import re
import socket
import stat
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor import __version__
from monitor.doctor import service
from monitor.doctor.check import Context
from monitor.host.listeners import is_daemon_command
from monitor.model.errors import UserError
from monitor.model.gpu import Gpu, Source
from monitor.model.host import Host
from monitor.model.snapshot import Collector, Snapshot
from tests.unit.doctor.prepared import complains, with_settings


@pytest.fixture
def busy_port() -> Any:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(8)
        yield taken.getsockname()[1]


def test_a_port_in_use_names_who_has_it(
    context: Context, busy_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_is_gpumon", lambda url: False)
    result = service.port(with_settings(context, listen=f"127.0.0.1:{busy_port}"))
    complains(result, "FAIL", f"process {os.getpid()}")
    monkeypatch.setattr(service, "_is_gpumon", lambda url: True)
    assert service.port(with_settings(context, listen=f"127.0.0.1:{busy_port}")).facts["daemon"] is True


def test_a_daemon_behind_tls_is_known_by_its_command() -> None:
    assert is_daemon_command(["/usr/bin/python3", "/opt/venv/bin/gpumon", "daemon", "--web-config=x"])
    assert is_daemon_command(["python", "-m", "monitor.cli.main", "daemon"])
    assert not is_daemon_command(["python", "-m", "http.server"])
    assert not is_daemon_command(["gpumon", "tui"])


def test_ports_that_are_free_foreign_or_open_to_all(context: Context) -> None:
    assert service.port(context).status == "SKIP"
    assert service.port(with_settings(context, listen="127.0.0.1:0")).status == "PASS"
    complains(service.port(with_settings(context, listen="192.0.2.1:10835")), "FAIL", "cannot listen")
    complains(service.port(with_settings(context, listen="0.0.0.0:0")), "WARN", "open to the network")
    guarded = with_settings(context, listen="0.0.0.0:0", web_config=Path("web.yml"))
    assert service.port(guarded).status == "PASS"


def test_the_socket_in_all_its_states(context: Context, tmp_path: Path) -> None:
    path = context.settings.socket
    assert path is not None
    assert "can be created" in service.unix_socket(context).detail
    path.write_text("")
    complains(service.unix_socket(context), "FAIL", "is not a socket")
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)
        assert service.unix_socket(context).facts["daemon"] is True
    assert stat.S_ISSOCK(path.stat().st_mode)
    complains(service.unix_socket(context), "WARN", "left over")
    complains(service.unix_socket(with_settings(context, socket=tmp_path / ("x" * 200))), "FAIL", "longer")
    complains(
        service.unix_socket(with_settings(context, socket=Path("/proc/x/s"))), "FAIL", "cannot be created"
    )
    assert service.unix_socket(with_settings(context, socket=None)).status == "SKIP"


FRESH = float("inf")
"""Stands for "now" in a parameter list, which is created long before its test runs."""


def _snapshot(**changed: Any) -> Snapshot:
    base = Snapshot(
        seq=1,
        time=FRESH,
        monotonic=1.0,
        interval_seconds=1.0,
        source=Source("none"),
        host=Host("h"),
        version=__version__,
    )
    return msgspec.structs.replace(base, **changed)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (_snapshot(), "PASS", "answers"),
        (_snapshot(time=5.0), "FAIL", "h old"),
        (_snapshot(version="0.0.1"), "WARN", r"0\.0\.1"),
        (_snapshot(collectors=(Collector("host", False, 0.1, error="boom"),)), "WARN", "host .boom"),
        (_snapshot(gpus=(Gpu(2, "GPU-x", state="lost"),)), "WARN", "GPU 2 is lost"),
        (UserError("no gpumon daemon answers"), "WARN", "no gpumon daemon"),
    ],
)
def test_the_daemon(context: Context, answer: Snapshot | UserError, status: str, words: str) -> None:
    if isinstance(answer, Snapshot) and answer.time == FRESH:
        answer = msgspec.structs.replace(answer, time=time.time())
    context.snapshot = answer
    result = service.daemon(context)
    assert result.status == status, result
    assert re.search(words, result.detail)
    assert bool(result.remedy) == (status != "PASS")


def test_a_daemon_that_was_asked_for_must_answer(context: Context) -> None:
    context.connect = "http://127.0.0.1:1"
    complains(service.daemon(context), "FAIL", "127.0.0.1:1")
