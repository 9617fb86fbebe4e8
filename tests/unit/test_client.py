"""Addresses as people type them, and which daemon is meant when they type none."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from monitor import client
from monitor.errors import UserError


@pytest.fixture(autouse=True)
def no_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("GPUMON_CONNECT", "GPUMON_LISTEN", "GPUMON_SOCKET", "RUNTIME_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GPUMON_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(client, "SERVICE_SOCKET", tmp_path / "service.sock")


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://node:9000", "http://node:9000"),
        ("node", "http://node:9835"),
        ("127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("https://ada:pw@node", "https://node:443"),
        ("unix:/run/x.sock", "unix:/run/x.sock"),
        ("unix:///run/x.sock", "unix:///run/x.sock"),
        ("/run/x.sock", "unix:/run/x.sock"),
    ],
)
def test_addresses(given: str, url: str) -> None:
    found = client.parse(given)
    assert found.url == url, "a password never shows in messages"
    if given.startswith(("unix", "/")):
        assert found.path == Path("/run/x.sock")


@pytest.mark.parametrize("given", ["ftp://x", "http://", "http://x:port", "http://x:99999999"])
def test_what_is_no_address_is_said(given: str) -> None:
    with pytest.raises(UserError, match="is not an address"):
        client.parse(given)


def test_login_goes_into_the_header() -> None:
    assert client.parse("https://ada:p%40w@node").authorization == "Basic YWRhOnBAdw=="


def test_order_of_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.resolve().url == "http://127.0.0.1:9835"
    with socket.socket(socket.AF_UNIX) as service, socket.socket(socket.AF_UNIX) as own:
        service.bind(str(tmp_path / "service.sock"))
        assert client.resolve().path == tmp_path / "service.sock"
        own.bind(str(tmp_path / "gpumon.sock"))
        assert client.resolve().path == tmp_path / "gpumon.sock"
    monkeypatch.setenv("GPUMON_CONNECT", "http://node:1")
    assert client.resolve().url == "http://node:1"
    assert client.resolve("http://other:2").url == "http://other:2"


def test_another_users_socket_in_a_shared_directory_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind(str(tmp_path / "gpumon.sock"))
        monkeypatch.setattr(client, "_owner", lambda path: 12345 if path.exists() else None)
        assert client.resolve().url == "http://127.0.0.1:9835"
