"""`gpumon daemon --otlp URL`: a real receiver takes what a real daemon pushes, and decodes the protobuf."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE, Metric

from sdk import TrainingMonitor
from tests.conftest import PATIENCE, wait_for
from tests.integration.daemon.process import GPUMON, Daemon, clean_environment

pytestmark = pytest.mark.slow
STEPS = 40
EVERY = ("--otlp-interval", "0.3", "--source", "simulated", "--gpus", "2")


class Receiver(ThreadingHTTPServer):
    """Takes metrics as the protocol says; `taken` are the decoded requests."""

    def __init__(self) -> None:
        self.taken: list[ExportMetricsServiceRequest] = []
        self.paths: list[str] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def metrics(self) -> dict[str, Metric]:
        newest = self.taken[-1].resource_metrics[0].scope_metrics[0]
        return {metric.name: metric for metric in newest.metrics}


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.paths.append(self.path)
        if self.server.status == 200:
            self.server.taken.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(ExportMetricsServiceResponse().SerializeToString())

    def log_message(self, *_: object) -> None: ...


@contextmanager
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def attributes(found: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in found}


def test_families_arrive_as_opentelemetry_s_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GIVEN a daemon with two GPUs and a run WHEN it pushes THEN gauges, counters and histograms arrive with
    their labels, units and values, under the names of /metrics."""
    (tmp_path / "rings").mkdir()
    monkeypatch.setenv("GPUMON_DIR", str(tmp_path / "rings"))
    monkeypatch.setenv("GPUMON_RUN_ID", "pushed")
    with TrainingMonitor("pushed") as monitor:
        for _ in range(STEPS):
            monitor.step()
    with receiver() as made, Daemon(tmp_path, "--otlp", made.url, *EVERY) as daemon:
        wait_for(lambda: made.taken and "gpumon_rank_step_seconds" in made.metrics())
        metrics, text = made.metrics(), daemon.get("/metrics")[2].decode()
    assert set(made.paths) == {"/v1/metrics"}
    resource = attributes(made.taken[-1].resource_metrics[0].resource.attributes)
    assert resource["service.name"] == "gpumon" and resource["service.instance.id"] == resource["host.name"]
    use = metrics["gpumon_gpu_utilization_ratio"]
    assert use.WhichOneof("data") == "gauge" and use.unit == "1" and len(use.gauge.data_points) == 2
    assert {attributes(point.attributes)["gpu"] for point in use.gauge.data_points} == {"0", "1"}
    steps = metrics["gpumon_rank_steps"]
    assert steps.sum.is_monotonic
    assert steps.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = steps.sum.data_points
    assert point.as_double == STEPS and attributes(point.attributes)["run"] == "pushed"
    (spread,) = metrics["gpumon_rank_step_seconds"].histogram.data_points
    assert (
        spread.count == sum(spread.bucket_counts)
        and len(spread.bucket_counts) == len(spread.explicit_bounds) + 1
    )
    assert not spread.HasField("min"), "not known is not sent"
    assert metrics["gpumon_run_info"].gauge.data_points[0].as_double == 1
    shown = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE gpumon_")}
    sent = {name + "_total" if one.WhichOneof("data") == "sum" else name for name, one in metrics.items()}
    assert shown - sent <= {"gpumon_metrics_render_seconds"}, "what the page has is pushed too"


def test_a_receiver_that_refuses_costs_a_line_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "rings").mkdir()
    with receiver() as made:
        made.status = 400
        with Daemon(tmp_path, "--otlp", f"{made.url}/own/path", *EVERY) as daemon:
            wait_for(lambda: len(made.paths) > 2)
            assert daemon.client().get("/metrics")
            made.status = 200
            wait_for(lambda: made.taken)
            wait_for(lambda: "takes metrics again" in daemon.log)
            assert daemon.log.count("does not take our metrics") == 1
            assert daemon.stop() == 0
    assert set(made.paths) == {"/own/path"}


def test_what_cannot_work_is_said_at_the_start(tmp_path: Path) -> None:
    """A wrong address, and the extra that is not installed."""
    home = ("--dir", str(tmp_path), "--store", "none", "--listen", "none", "--socket", str(tmp_path / "s"))
    wrong = subprocess.run(
        [*GPUMON, "daemon", *home, "--otlp", "collector:4318"],
        capture_output=True, text=True, timeout=PATIENCE, env=clean_environment(), check=False,
    )  # fmt: skip
    assert wrong.returncode == 2 and "is not the address of an OTLP receiver" in wrong.stderr
    blocked = (
        "import sys; sys.modules['opentelemetry'] = None; from monitor.cli.main import main; sys.exit(main())"
    )
    without = subprocess.run(
        [sys.executable, "-c", blocked, "daemon", *home, "--otlp", "http://collector:4318"],
        capture_output=True, text=True, timeout=PATIENCE, env=clean_environment(), check=False,
    )  # fmt: skip
    assert without.returncode == 2 and "pip install 'gpumon-train[otlp]'" in without.stderr
