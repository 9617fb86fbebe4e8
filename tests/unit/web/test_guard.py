"""Who may read: names of this machine and addresses; nobody through a name of their own."""

from __future__ import annotations

import socket

import pytest

from monitor.web.families.base import Own
from monitor.web.guard import Guard

NAME = socket.gethostname()


async def nothing(scope: object, receive: object, send: object) -> None: ...


@pytest.mark.parametrize(
    ("host", "local", "exposed"),
    [
        ("localhost:10835", True, True),
        ("127.0.0.1:10835", True, True),
        ("[::1]:10835", True, True),
        ("10.1.2.3", True, True),
        (f"{NAME}:10835", True, True),
        (f"{NAME}.cluster.internal:10835", False, True),
        ("monitor.example", True, True),
        ("evil.example", False, False),
        ("localhost.evil.example", False, False),
        ("", False, False),
        ("[broken", False, False),
        ("localhost:10835@evil.example", False, False),
        ("localhost@evil.example", False, False),
        ("evil.example#localhost", False, False),
        ("localhost/evil.example", False, False),
        ("localhost evil.example", False, False),
        ("127.0.0.1:99999999", False, False),
        ("localhost.:10835", True, True),
    ],
)
def test_host_check(host: str, local: bool, exposed: bool) -> None:
    for is_exposed, expected in ((False, local), (True, exposed)):
        guard = Guard(nothing, Own(), ["monitor.example"], exposed=is_exposed)
        assert guard.allowed(host) is expected
        assert guard.allowed(host) is expected, "the same the second time"


def test_remembered_names_are_bounded() -> None:
    guard = Guard(nothing, Own())
    for port in range(1000):
        guard.allowed(f"127.0.0.1:{port}")
    assert len(guard._known) <= 64
