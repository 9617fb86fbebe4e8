"""TLS and passwords on the port, as Prometheus would use them; the socket needs neither."""

from __future__ import annotations

import base64
import ssl
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bcrypt
import pytest

from monitor.client import Client
from monitor.model.errors import UserError
from tests.conftest import PATIENCE, require_program
from tests.faults.people import ALICE
from tests.integration.daemon.process import GPUMON, Daemon, clean_environment
from tests.users import attempt, require_users


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    openssl = require_program("openssl")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", folder / "node.key", "-out", folder / "node.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (folder / "web.yml").write_text(
        "tls_server_config:\n  cert_file: node.crt\n  key_file: node.key\n"
        f"basic_auth_users:\n  prometheus: {hashed}\n"
    )
    return folder


def ask(url: str, certificate: Path, login: str | None) -> int:
    request = urllib.request.Request(url)
    if login:
        request.add_header("Authorization", "Basic " + base64.b64encode(login.encode()).decode())
    context = ssl.create_default_context(cafile=str(certificate / "node.crt"))
    try:
        with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_tls_and_basic_auth(certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "node.crt"))
    with Daemon(tmp_path, "--source", "none", "--web-config", str(certificate / "web.yml")) as daemon:
        assert daemon.url.startswith("https://")
        url = f"https://127.0.0.1:{daemon.port}"
        answers = [
            ask(f"{url}/metrics", certificate, login) for login in (None, "prometheus:wrong", "x:secret")
        ]
        assert answers == [401, 401, 401]
        assert ask(f"{url}/metrics", certificate, "prometheus:secret") == 200
        assert ask(f"{url}/-/healthy", certificate, None) == 401
        with Client(f"https://prometheus:secret@127.0.0.1:{daemon.port}") as client:
            assert client.snapshot().seq > 0
        with pytest.raises(UserError, match="requires a password"):
            Client(f"https://127.0.0.1:{daemon.port}").snapshot()
        with daemon.client() as local:
            assert local.snapshot().seq > 0


def test_a_certificate_that_does_not_fit_is_one_sentence(certificate: Path, tmp_path: Path) -> None:
    (tmp_path / "web.yml").write_text("tls_server_config: {cert_file: none.crt, key_file: none.key}\n")
    options = ["--dir", str(tmp_path), "--store", "none", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*GPUMON, "daemon", *options, "--source", "none", "--web-config", str(tmp_path / "web.yml")],
        env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "cannot use the certificate" in done.stderr


@pytest.mark.slow
def test_a_real_prometheus_scrapes_it(tmp_path: Path) -> None:
    """Every second, OpenMetrics with exemplars, for a few seconds; then its own API is queried."""
    from tests.conftest import wait_for
    from tests.integration.daemon.prometheus import prometheus

    program = require_program("prometheus")
    with Daemon(tmp_path, "--source", "simulated", "--gpus", "4") as daemon, prometheus(
        program, tmp_path, [f"127.0.0.1:{daemon.port}"]
    ) as query:  # fmt: skip
        wait_for(lambda: query("up") == [1.0])
        wait_for(lambda: len(query("gpumon_gpu_utilization_ratio")) == 4)
        joined = query('gpumon_gpu_power_watts * on(uuid) group_left(name) gpumon_gpu_info{simulated="true"}')
        assert len(joined) == 4
        wait_for(lambda: (query("rate(gpumon_snapshots_total[10s])") or [0])[0] > 1)


@pytest.mark.slow
def test_wrong_logins_of_one_user_do_not_lock_out_another(tmp_path: Path) -> None:
    """GIVEN 50 wrong logins at once, at the cost htpasswd is told to use THEN few of them are checked, and
    another user of the machine, whose login is not cached yet, gets in meanwhile."""
    require_users()
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(12)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users:\n  prometheus: {hashed}\n")
    with Daemon(tmp_path, "--source", "none", "--web-config", str(tmp_path / "web.yml")) as daemon:
        with ThreadPoolExecutor(51) as pool:
            asked = [pool.submit(login, daemon, f"prometheus:wrong {at}") for at in range(50)]
            right = attempt(
                ALICE,
                f"""
import base64, time, urllib.error, urllib.request
request = urllib.request.Request("{daemon.url}/metrics")
request.add_header("Authorization", "Basic " + base64.b64encode(b"prometheus:secret").decode())
while True:
    try:
        assert urllib.request.urlopen(request, timeout={PATIENCE}).status == 200
        break
    except urllib.error.HTTPError as error:
        assert error.code == 503, error
        time.sleep(1)
""",
            )
            answers = Counter(one.result() for one in asked)
        assert right == "" and answers[401] <= 10 and set(answers) <= {401, 429, 503}


def login(daemon: Daemon, text: str) -> int:
    return daemon.get("/metrics", Authorization="Basic " + base64.b64encode(text.encode()).decode())[0]


@pytest.mark.parametrize(
    ("listen", "options", "warned"),
    [
        ("0.0.0.0:0", (), True),
        ("[::]:0", (), True),
        ("0.0.0.0:0", ("--insecure",), False),
        ("127.0.0.1:0", (), False),
    ],
)
def test_an_open_door_is_said_loudly(
    tmp_path: Path, listen: str, options: tuple[str, ...], warned: bool
) -> None:
    with Daemon(tmp_path, "--source", "none", "--listen", listen, *options) as daemon:
        assert ("ANYBODY WHO REACHES THIS MACHINE" in daemon.log) is warned


def test_a_password_without_tls_is_said(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users:\n  prometheus: {hashed}\n")
    web = ("--web-config", str(tmp_path / "web.yml"))
    with Daemon(tmp_path, "--source", "none", "--listen", "0.0.0.0:0", *web) as daemon:
        assert "it is served without TLS." in daemon.log
