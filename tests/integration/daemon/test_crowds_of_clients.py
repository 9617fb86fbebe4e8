"""Misbehaving clients, alone or in crowds: the others are still answered."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from monitor.web.client_limits import MAX_STREAMS_EACH
from monitor.web.connection import MAX_CONNECTIONS, REQUEST_SECONDS
from tests.conftest import require_program, wait_for
from tests.faults.people import ALICE
from tests.integration.daemon.process import Daemon
from tests.users import attempt, require_users

HEAD = b"GET %s HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(
        tmp_path_factory.mktemp("daemon"), "--source", "simulated", "--gpus", "8", interval="0.05"
    ) as started:
        yield started


def connect(daemon: Daemon, sent: bytes = b"", receive_buffer: int | None = None) -> socket.socket:
    found = socket.socket()
    if receive_buffer:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    found.settimeout(60)
    found.connect(("127.0.0.1", daemon.port))
    if sent:
        found.sendall(sent)
    return found


def is_closed(one: socket.socket) -> bool:
    """Whether the daemon has closed it; what it sent before is read and dropped."""
    one.settimeout(0.05)
    try:
        while one.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def status(one: socket.socket) -> int:
    return int(one.recv(64).split()[1])


def test_silent_streams_of_one_user_lock_nobody_out(daemon: Daemon) -> None:
    """GIVEN a user opens far more streams than allowed THEN some are refused and another user gets one."""
    require_users()
    with ExitStack() as stack:
        answers = [
            status(stack.enter_context(connect(daemon, HEAD % b"/api/v1/stream" + b"\r\n")))
            for _ in range(3 * MAX_STREAMS_EACH)
        ]  # one at a time: all at once would be too many requests in flight
        assert answers.count(200) == MAX_STREAMS_EACH and set(answers) == {200, 503}
        ask = f"""
import sys, urllib.request
answer = urllib.request.urlopen("{daemon.url}/api/v1/stream", timeout=600)
sys.exit(0 if answer.read(4) else 1)
"""
        assert attempt(ALICE, ask) == ""
    wait_for(lambda: daemon.metric("gpumon_http_streams") == 0)


def test_a_crowd_of_silent_connections_locks_nobody_out(daemon: Daemon) -> None:
    """GIVEN more half-sent requests than there are connections THEN the oldest are dropped, and everybody
    else is answered at once."""
    with ExitStack() as stack:
        slow = [
            stack.enter_context(connect(daemon, HEAD % b"/metrics")) for _ in range(MAX_CONNECTIONS + 100)
        ]
        assert daemon.get("/metrics")[0] == 200
        assert is_closed(slow[0]), "it was idle for longest"
        assert not is_closed(slow[-1])


@pytest.mark.slow
def test_who_takes_too_long_is_let_go_of(daemon: Daemon) -> None:
    """Nothing sent, half a head, a byte now and then, a body that never comes, and a response left unread."""
    unread = connect(daemon, HEAD % b"/api/v1/stream" + b"\r\n", receive_buffer=4096)
    lazy = {
        "silent": connect(daemon),
        "half a head": connect(daemon, HEAD % b"/metrics"),
        "no body": connect(daemon, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"),
        "half after whole": connect(daemon, HEAD % b"/-/healthy" + b"\r\n" + HEAD % b"/metrics"),
    }
    trickle = connect(daemon, HEAD % b"/metrics")
    begin = time.monotonic()

    def all_closed() -> bool:
        try:
            trickle.send(b"x")
        except ConnectionError:
            return all(is_closed(one) for one in lazy.values())
        return False

    wait_for(all_closed, every=0.5)
    assert time.monotonic() - begin > REQUEST_SECONDS / 2, "a slow network has some time"
    wait_for(lambda: daemon.metric("gpumon_http_streams") == 0)
    for one in (*lazy.values(), trickle, unread):
        one.close()


def test_many_requests_at_a_time_are_answered_or_told_to_come_again(daemon: Daemon) -> None:
    with ThreadPoolExecutor(100) as pool:
        asked = [pool.submit(daemon.get, "/api/v1/history?points=5000") for _ in range(300)]
        found = {one.result()[0] for one in asked}
    assert 200 in found and found <= {200, 503}
    assert daemon.get("/api/v1/history")[0] == 200


def test_without_descriptors_it_says_so_once_and_comes_back(tmp_path: Path) -> None:
    """GIVEN clients have taken every descriptor THEN the log has one line about it, not one per attempt."""
    limited = [require_program("prlimit"), "--nofile=64:64"]
    with Daemon(tmp_path, "--source", "none", through=limited) as daemon:
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(connect(daemon))
            wait_for(lambda: "out of system resource" in daemon.log)
            time.sleep(3)  # several attempts to accept, each of which asyncio reports many times
        wait_for(lambda: asked(daemon))
        assert daemon.log.count("out of system resource") <= 2


def asked(daemon: Daemon) -> bool:
    try:
        return daemon.get("/metrics")[0] == 200
    except OSError:
        return False


def test_it_may_open_as_many_files_as_it_is_allowed(tmp_path: Path) -> None:
    limited = [require_program("prlimit"), "--nofile=256:4096"]
    with Daemon(tmp_path, "--source", "none", through=limited) as daemon:
        assert daemon.process is not None
        limits = Path(f"/proc/{daemon.process.pid}/limits").read_text()
        assert next(line for line in limits.splitlines() if "open files" in line).split()[3:5] == ["4096"] * 2


@pytest.mark.parametrize(
    "host",
    [
        b"localhost:10835@evil.example",
        b"localhost@evil.example",
        b"evil.example",
        b"localhost, evil",
        b"127.0.0.1:x",
    ],
)
def test_a_host_that_is_not_one_of_ours_is_refused(daemon: Daemon, host: bytes) -> None:
    with connect(daemon, b"GET /api/v1/snapshot HTTP/1.1\r\nHost: %s\r\n\r\n" % host) as one:
        assert status(one) == 403


def test_two_hosts_are_none(daemon: Daemon) -> None:
    two = b"Host: localhost\r\nHost: evil.example\r\n"
    with connect(daemon, b"GET /api/v1/snapshot HTTP/1.1\r\n%s\r\n" % two) as one:
        assert status(one) in (400, 403)


def test_a_large_body_is_refused_before_it_is_sent(daemon: Daemon) -> None:
    head = b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n"
    with connect(daemon, head) as one:
        assert status(one) == 413


def test_garbage_fills_no_log(daemon: Daemon) -> None:
    for _ in range(50):
        with connect(daemon, b"\x16\x03\x01garbage\r\n\r\n") as one:
            assert status(one) == 400
    assert daemon.log.count("Invalid HTTP request") <= 1
