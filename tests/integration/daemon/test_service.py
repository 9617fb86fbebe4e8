"""The daemon as its clients see it: one process for the whole file, simulated GPUs."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from monitor.client import Client
from monitor.model.errors import UserError
from monitor.model.snapshot import decode
from tests.conftest import PATIENCE, require_program
from tests.integration.daemon.process import GPUMON, Daemon, clean_environment


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("daemon"), "--source", "simulated", "--gpus", "2") as started:
        yield started


def test_it_says_loudly_that_readings_are_simulated(daemon: Daemon) -> None:
    assert "SIMULATED readings, not real ones: 2 GPUs and the host" in daemon.log
    assert daemon.metric("gpumon_source_info", 'source="simulated"') == 1


def test_metrics_are_clean_in_both_formats_and_gzipped(daemon: Daemon) -> None:
    status, headers, body = daemon.get("/metrics")
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert {family.name for family in parse_text(body.decode())} >= {
        "gpumon_gpu_utilization_ratio",
        "gpumon_host_load",
    }
    promtool = require_program("promtool")
    checked = subprocess.run([promtool, "check", "metrics"], input=body, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, b"")
    _, headers, body = daemon.get("/metrics", Accept="application/openmetrics-text", Accept_Encoding="gzip")
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert headers["content-encoding"] == "gzip"
    assert list(parse_openmetrics(gzip.decompress(body).decode()))


def test_health_and_readiness_are_two_things(daemon: Daemon) -> None:
    assert daemon.process is not None
    assert daemon.json("/-/healthy")["pid"] == daemon.process.pid
    assert daemon.get("/-/ready")[0] == 200


def test_snapshot_is_the_same_over_tcp_and_socket(daemon: Daemon) -> None:
    over_tcp = decode(daemon.get("/api/v1/snapshot")[2])
    with daemon.client() as client:
        over_socket = client.snapshot()
    assert over_tcp.schema == over_socket.schema and over_socket.seq >= over_tcp.seq
    assert [gpu.uuid for gpu in over_socket.gpus] == [gpu.uuid for gpu in over_tcp.gpus]
    assert all(gpu.simulated for gpu in over_tcp.gpus)
    assert {collector.name for collector in over_tcp.collectors} >= {
        "rings",
        "host",
        "gpu",
        "processes",
        "runs",
    }


def test_stream_gives_each_snapshot_once_and_in_order(daemon: Daemon) -> None:
    seen = []
    for snapshot in Client(daemon.url).stream():
        seen.append(snapshot.seq)
        if len(seen) == 4:
            break
    assert seen == list(range(seen[0], seen[0] + 4))


def test_ticks_come_no_faster_than_asked(daemon: Daemon) -> None:
    times = []
    for snapshot in daemon.client().stream():
        times.append(snapshot.monotonic)
        if len(times) == 6:
            break
    assert times == sorted(times)
    assert times[-1] - times[0] > 3 * 0.2, "five intervals, of which the first may have begun late"


@pytest.mark.parametrize(
    ("path", "status"), [("/nowhere", 404), ("/api/v1/runs/none", 404), ("/api/v1/history?from=x", 400)]
)
def test_errors_are_json_with_a_sentence(daemon: Daemon, path: str, status: int) -> None:
    found, headers, body = daemon.get(path)
    assert (found, headers["content-type"]) == (status, "application/json")
    assert json.loads(body)["error"]


def test_other_methods_are_refused_as_json(daemon: Daemon) -> None:
    raw = exchange(daemon, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    assert raw.startswith(b"HTTP/1.1 405 ") and b'{"error":"POST is not allowed here"}' in raw


def test_pages_of_other_origins_cannot_read_it(daemon: Daemon) -> None:
    """DNS rebinding arrives with the attacker's Host; a cross-site fetch identifies itself."""
    assert daemon.get("/api/v1/snapshot", Host="evil.example:10835")[0] == 403
    assert daemon.get("/api/v1/snapshot", Host="localhost.evil.example")[0] == 403
    assert daemon.get("/api/v1/snapshot", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors")[0] == 403
    status, headers, _ = daemon.get("/api/v1/snapshot", Origin="http://evil.example")
    assert status == 200 and "access-control-allow-origin" not in headers
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert daemon.get("/metrics", Host=socket.gethostname())[0] == 200


def test_the_page_brings_everything_itself(daemon: Daemon) -> None:
    status, headers, body = daemon.get("/")
    assert status == 200 and headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert b"src=" not in body and b"<link" not in body and b"@import" not in body


def test_history_and_ledger_answer(daemon: Daemon) -> None:
    assert daemon.json("/api/v1/runs") == []
    page = daemon.json("/api/v1/history?points=10")
    assert any(series["subject"].startswith("gpu:") for series in page["series"])
    assert daemon.json("/api/v1/ledger")["entries"] == []
    assert daemon.json("/api/v1/runs/none/steps")["step"] == []


def test_garbage_does_not_disturb_it(daemon: Daemon) -> None:
    assert exchange(daemon, b"\x16\x03\x01 garbage\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert daemon.get("/-/healthy")[0] == 200


def exchange(daemon: Daemon, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE) as raw:
        raw.sendall(request)
        raw.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: raw.recv(65536), b""))


def test_status_asks_the_daemon_and_prints_what_it_knows(daemon: Daemon) -> None:
    environment = clean_environment(GPUMON_CONNECT=f"unix:{daemon.socket}")
    text = subprocess.run(
        [*GPUMON, "status"], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert f"daemon at unix:{daemon.socket}" in text and "SIMULATED" in text and "[1] " in text
    whole = subprocess.run(
        [*GPUMON, "status", "--json"], env=environment, capture_output=True, check=True
    ).stdout
    assert len(decode(whole).gpus) == 2


def test_status_with_a_named_daemon_that_is_gone_exits_3(tmp_path: Path) -> None:
    done = subprocess.run(
        [*GPUMON, "status", "--connect", f"unix:{tmp_path}/none.sock"], capture_output=True, text=True
    )
    assert done.returncode == 3 and done.stdout == ""
    assert "no gpumon daemon answers at unix:" in done.stderr and "hint: start one" in done.stderr


def test_client_names_what_is_wrong(daemon: Daemon) -> None:
    with pytest.raises(UserError, match="no such path"):
        Client(daemon.url).get_json("/nowhere")
    with pytest.raises(UserError, match="is not an address"):
        Client("ftp://somewhere")
