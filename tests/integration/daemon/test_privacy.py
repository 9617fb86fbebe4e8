"""Commands and source lines are for their owner: a daemon under its own user, two users, and a network."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE, wait_for
from tests.faults.people import ALICE, MALLORY, person
from tests.users import as_user, require_users

SERVICE = 61_104
SECRET_CODE = "loss = model(batch) + secret_sauce(batch)"
COMMAND = "python train.py --wandb-key=abcdef --lr 0.1"
META = {
    "command": COMMAND,
    "script": "/home/alice/private/train.py",
    "config": {
        "loader": {"num_workers": 0},
        "work": [{"phase": "forward", "code": SECRET_CODE}],
        "hotspots": [
            {"phase": "forward", "function": "f", "file": "train.py", "line": 7, "code": SECRET_CODE}
        ],
    },
}
ASK = """
import sys
from monitor.client import Client
sys.stderr.write(Client(sys.argv[1]).get(sys.argv[2]).decode())
"""


class Service:
    """A daemon under its own user, which every user may ask, and a run of Alice's."""

    def __init__(self, base: Path, *options: str) -> None:
        self.rings, self.runtime = base / "rings", base / "runtime"
        for place, owner, mode in ((self.rings, SERVICE, 0o3773), (self.runtime, SERVICE, 0o755)):
            place.mkdir()
            os.chown(place, owner, owner)
            place.chmod(mode)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.options = options

    @property
    def unix(self) -> str:
        return f"unix:{self.runtime}/gpumon.sock"

    @property
    def tcp(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> subprocess.Popen[bytes]:
        words = ["--dir", str(self.rings), "--store", "none", "--source", "none", "--interval", "0.2"]
        words += ["--listen", f"0.0.0.0:{self.port}", "--insecure", "--socket-mode", "0666", *self.options]
        return as_user(
            SERVICE, "-m", "monitor.cli.main", "daemon", *words, RUNTIME_DIRECTORY=str(self.runtime)
        )

    def ask(self, user: int, url: str, path: str = "/api/v1/snapshot") -> Any:
        """The answer as this user gets it."""
        asked = as_user(user, "-c", ASK, url, path)
        _, text = asked.communicate(timeout=PATIENCE)
        assert asked.returncode == 0, text.decode()
        return json.loads(text)


@contextlib.contextmanager
def service(*options: str) -> Iterator[Service]:
    require_users()
    base = Path(tempfile.mkdtemp(prefix="gpumon-privacy-", dir="/dev/shm"))
    base.chmod(0o755)
    made = Service(base, *options)
    daemon = made.start()
    try:
        with person(made.rings, ALICE) as alice:
            alice.train("secret", steps=300, slots=1024, **META)
            wait_for(lambda: (made.runtime / "gpumon.sock").exists())
            wait_for(lambda: _runs(made))
            yield made
    finally:
        daemon.kill()
        daemon.communicate(timeout=PATIENCE)
        shutil.rmtree(base)


def _runs(made: Service) -> Any:
    """The runs the daemon knows; none before its first snapshot."""
    try:
        return made.ask(SERVICE, made.unix)["runs"]
    except AssertionError:
        return None


@pytest.fixture(scope="module")
def shared() -> Iterator[Service]:
    with service() as made:
        yield made


def texts(answer: Any) -> str:
    return json.dumps(answer)


@pytest.mark.parametrize("user", [ALICE, SERVICE, 0], ids=["owner", "daemon", "root"])
def test_the_owner_the_daemon_and_root_see_it_over_the_socket(shared: Service, user: int) -> None:
    run = shared.ask(user, shared.unix)["runs"][0]
    assert SECRET_CODE in texts(run["config"]) and run["script"] == META["script"]
    assert run["command"] == "python train.py --wandb-key=*** --lr 0.1", "a secret is nobody's to see"


def test_the_owner_sees_it_over_loopback_too(shared: Service) -> None:
    """The kernel knows who is behind a local connection: a page on one's own laptop is complete."""
    run = shared.ask(ALICE, shared.tcp)["runs"][0]
    assert SECRET_CODE in texts(run) and run["command"]


@pytest.mark.parametrize("path", ["/api/v1/snapshot", "/api/v1/runs", f"/api/v1/runs/secret@{ALICE}"])
@pytest.mark.parametrize("user", [MALLORY, 0], ids=["another user", "root over TCP"])
def test_others_see_figures_but_not_the_code(shared: Service, path: str, user: int) -> None:
    url = shared.tcp if user == 0 else shared.unix
    answer = shared.ask(user, url, path)
    told = texts(answer)
    assert "secret_sauce" not in told and "train.py --" not in told and "/home/alice" not in told
    rows = answer if path.endswith("runs") else [answer["runs"][0] if "runs" in answer else answer]
    assert rows[0]["state"] in ("running", "stalled") and rows[0]["steps"] > 0


def test_over_the_network_nobody_sees_it(shared: Service) -> None:
    """Through this machine's own non-loopback address: whoever asks is only an address."""
    address = _own_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    with urllib.request.urlopen(
        f"http://{address}:{shared.port}/api/v1/snapshot", timeout=PATIENCE
    ) as answer:
        told = answer.read().decode()
    assert "secret_sauce" not in told and json.loads(told)["runs"][0]["steps"] > 0


def _own_address() -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: the kernel only chooses an address
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


def test_the_stream_is_as_private_as_the_snapshot(shared: Service) -> None:
    read = """
import sys
from monitor.client import Client
from monitor.model.snapshot import encode
sys.stderr.write(encode(next(Client(sys.argv[1]).stream())).decode())
"""
    told = {}
    for user in (ALICE, MALLORY):
        asked = as_user(user, "-c", read, shared.unix)
        told[user] = asked.communicate(timeout=PATIENCE)[1].decode()
        assert asked.returncode == 0, told[user]
    assert "secret_sauce" in told[ALICE] and "secret_sauce" not in told[MALLORY]


def test_show_commands_shows_them_to_everybody() -> None:
    with service("--show-commands") as made:
        assert SECRET_CODE in texts(made.ask(MALLORY, made.unix))
        assert SECRET_CODE in texts(made.ask(MALLORY, made.tcp))


def test_commands_of_processes_are_their_owners(tmp_path: Path) -> None:
    """A process of Alice's shows its command only to her, and its secrets to nobody."""
    with service() as made, person(made.rings, ALICE) as other:
        other.train("second", steps=1)
        wait_for(lambda: len(made.ask(SERVICE, made.unix)["processes"]) >= 2)
        seen = {user: made.ask(user, made.unix)["processes"] for user in (ALICE, MALLORY)}
    assert all(one["command"] and Path(sys.executable).name[:6] in one["command"] for one in seen[ALICE])
    assert [one["command"] for one in seen[MALLORY]] == [None] * len(seen[MALLORY])
