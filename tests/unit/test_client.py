"""Addresses as people type them, and which daemon is meant if they type none."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.model import address
from monitor.model import settings as options
from monitor.model.errors import UserError


@pytest.fixture
def runtime() -> Iterator[str]:
    """A folder with a short name: a socket's path may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="gpumon-") as folder:
        yield f"{folder}/runtime"


@pytest.fixture(autouse=True)
def no_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, runtime: str) -> None:
    for name in ("GPUMON_CONNECT", "GPUMON_LISTEN", "GPUMON_SOCKET", "RUNTIME_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPUMON_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setattr(address, "SERVICE_SOCKET", tmp_path / "service.sock")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://node:9000", "http://node:9000"),
        ("node", "http://node:10835"),
        ("127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("https://ada:pw@node", "https://node:443"),
        ("unix:/run/x.sock", "unix:/run/x.sock"),
        ("unix:///run/x.sock", "unix:///run/x.sock"),
        ("/run/x.sock", "unix:/run/x.sock"),
    ],
)
def test_addresses(given: str, url: str) -> None:
    found = address.parse(given)
    assert found.url == url, "a password never shows in messages"
    if given.startswith(("unix", "/")):
        assert found.path == Path("/run/x.sock")


@pytest.mark.parametrize(
    "given", ["http://[::1", "[", "ftp://x", "http://", "http://x:port", "http://x:99999999"]
)
def test_what_is_no_address_is_said(given: str) -> None:
    with pytest.raises(UserError, match="is not an address"):
        address.parse(given)


def test_login_goes_into_the_header() -> None:
    assert address.parse("https://ada:p%40w@node").authorization == "Basic YWRhOnBAdw=="


def bind_own(sock: socket.socket) -> Path:
    """Where the user's own daemon would be."""
    path = options.load().socket
    assert path is not None
    path.parent.mkdir(parents=True)
    sock.bind(str(path))
    return path


def test_order_of_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address.resolve().url == "http://127.0.0.1:10835"
    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX) as own:
        service.bind(str(tmp_path / "service.sock"))
        assert address.resolve().path == tmp_path / "service.sock"
        mine = bind_own(own)
        assert address.resolve().path == mine
    monkeypatch.setenv("GPUMON_CONNECT", "http://node:1")
    assert address.resolve().url == "http://node:1"
    assert address.resolve("http://other:2").url == "http://other:2"


def test_another_users_socket_in_a_shared_directory_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as planted:
        bind_own(planted)
        monkeypatch.setattr(address, "_owner", lambda path: 12345 if path.exists() else None)
        assert address.resolve().url == "http://127.0.0.1:10835"


def test_who_listens(tmp_path: Path, runtime: str) -> None:
    place = Path(f"{runtime}.sock")
    with socket.socket(socket.AF_UNIX) as local, socket.socket() as port:
        assert not address.is_served(address.parse(f"unix:{place}"))
        local.bind(str(place))
        local.listen()
        assert address.is_served(address.parse(f"unix:{place}"))
        port.bind(("127.0.0.1", 0))
        free = address.parse(f"127.0.0.1:{port.getsockname()[1]}")
        assert not address.is_served(free)
        port.listen()
        assert address.is_served(free)
