"""Who is at the other end of a connection, according to the kernel."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitor.web.peer import Peer
from tests.faults.people import ALICE, require_root, shared_folder

FAMILIES = {"IPv4": (socket.AF_INET, "127.0.0.1"), "IPv6": (socket.AF_INET6, "::1")}


@contextmanager
def connected(family: int, address: str | Path, uid: int | None) -> Iterator[socket.socket]:
    """Our end of a connection made by a process of this user."""
    with socket.socket(family) as server:
        server.bind(str(address) if family == socket.AF_UNIX else (address, 0))
        if family == socket.AF_UNIX:
            Path(address).chmod(0o666)
        server.listen()
        pid = os.fork()
        if pid == 0:
            if uid is not None:
                os.setgid(uid)
                os.setuid(uid)
            with socket.socket(family) as client:
                client.connect(server.getsockname())
                time.sleep(60)
                os._exit(0)
        try:
            server.settimeout(20)
            yield server.accept()[0]
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("uid", [None, ALICE])
def test_a_user_of_this_machine_is_known_over_tcp(kind: str, uid: int | None) -> None:
    if uid is not None:
        require_root()
    with connected(*FAMILIES[kind], uid) as end, end:
        peer = Peer(end)
        assert peer.uid == (os.getuid() if uid is None else uid)
        assert peer.client == f"uid {peer.uid}" and not peer.is_local_socket


def test_a_user_is_known_over_the_socket() -> None:
    require_root()
    with shared_folder() as folder, connected(socket.AF_UNIX, folder / "s", ALICE) as end, end:
        assert Peer(end).uid == ALICE and Peer(end).is_local_socket


def test_who_has_gone_is_nobody() -> None:
    with connected(*FAMILIES["IPv4"], None) as end:
        end.close()
        assert Peer(end).uid is None and Peer(end).client == ""


def test_ipv4_through_an_ipv6_socket() -> None:
    with socket.socket(socket.AF_INET6) as server:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::", 0))
        server.listen()
        with socket.create_connection(("127.0.0.1", server.getsockname()[1])), server.accept()[0] as end:
            assert end.getpeername()[0] == "::ffff:127.0.0.1"
            assert Peer(end).uid == os.getuid()


def test_elsewhere_is_an_address() -> None:
    class Far:
        family = socket.AF_INET6

        def getpeername(self) -> tuple[str, int]:
            return ("2001:db8:1:2:3:4:5:6", 50000)

        def getsockname(self) -> tuple[str, int]:
            return ("2001:db8:1:2::1", 10835)

    peer = Peer(Far())  # type: ignore[arg-type]
    assert peer.uid is None and peer.client == "2001:db8:1:2::/64", "a network counts as one client"
