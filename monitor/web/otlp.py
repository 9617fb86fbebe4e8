"""Our families as OpenTelemetry metrics, sent over OTLP/HTTP: for sites that push and have no Prometheus.

Names are those of `/metrics` without the suffix a counter's type implies (`_total`): Prometheus's own OTLP
receiver and the OpenTelemetry collector put it back. Needs `gpumon-train[otlp]`, so nobody imports this file
but `monitor.daemon.pushing`, when it is asked to push.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from monitor import __version__
from monitor.model.errors import UserError
from monitor.model.snapshot import Snapshot
from monitor.web.exposition import clean
from monitor.web.families.base import Distribution, Family, Labels, Scene, make_scene
from monitor.web.metrics import Metrics

PATH = "/v1/metrics"
"""Where an OTLP/HTTP receiver takes metrics, by the protocol's own default."""
UNITS = {
    "seconds": "s", "bytes": "By", "joules": "J", "watts": "W", "hertz": "Hz", "celsius": "Cel", "ratio": "1",
}  # fmt: skip
"""Base units as UCUM writes them, which OpenTelemetry asks for."""
NANOSECONDS = 1_000_000_000
UNKNOWN_START = 0
"""When a counter began to count: at the driver's or the run's start, which the family does not tell."""

log = logging.getLogger("gpumon")


class Otlp:
    """Sends snapshots to one address. Nothing is kept for later: the next one has newer figures."""

    def __init__(self, address: str, metrics: Metrics) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # one line of ours says it better
        self.url = endpoint(address)
        self._exporter = OTLPMetricExporter(self.url)
        self._metrics = metrics
        self._failing = False

    def send(self, snapshot: Snapshot) -> bool:
        """Whether it was taken; the first failure and the first success after one are logged."""
        scene = make_scene(snapshot, self._metrics.own, self._metrics.limits)
        data = metrics_data(scene, self._metrics.families)
        taken = self._exporter.export(data) is MetricExportResult.SUCCESS
        if taken is self._failing:
            self._failing = not taken
            log.warning("%s %s", self.url, "takes metrics again" if taken else "does not take our metrics")
        return taken

    def close(self) -> None:
        self._exporter.shutdown()


def endpoint(address: str) -> str:
    """The address as typed; where it names no path, with the protocol's own."""
    try:
        parts = urlsplit(address)
    except ValueError:  # "http://[::1"
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(
            f"{address!r} is not the address of an OTLP receiver", hint="use http://HOST:4318 or its full URL"
        )
    return address if parts.path.strip("/") else f"{address.rstrip('/')}{PATH}"


def metrics_data(scene: Scene, families: Iterable[Family]) -> MetricsData:
    """A whole page; a family without a sample is not in it."""
    made = [metric for family in families if (metric := _metric(family, scene)) is not None]
    scope = ScopeMetrics(InstrumentationScope("gpumon", __version__), made, "")
    return MetricsData([ResourceMetrics(_resource(scene.snapshot), [scope], "")])


def _resource(snapshot: Snapshot) -> Resource:
    """Prometheus's receiver makes `job` and `instance` of the service's name and instance."""
    host = snapshot.host.hostname
    named = {"service.name": "gpumon", "service.version": __version__, "host.name": host}
    return Resource(named | {"service.instance.id": host})


def _metric(family: Family, scene: Scene) -> Metric | None:
    time = _nanoseconds(scene.snapshot)
    data = _histogram(family, scene, time) if family.distributions else _simple(family, scene, time)
    name = family.name if family.kind == "info" else family.base
    return Metric(name, family.help, UNITS.get(family.unit or "", ""), data) if data.data_points else None


def _nanoseconds(snapshot: Snapshot) -> int:
    return round(snapshot.time * NANOSECONDS)


def _simple(family: Family, scene: Scene, time: int) -> Sum | Gauge:
    points = [
        NumberDataPoint(_attributes(family, labels), UNKNOWN_START, time, float(value))
        for labels, value in family.read(scene)
        if value is not None
    ]
    counted = family.kind == "counter"
    return Sum(points, AggregationTemporality.CUMULATIVE, True) if counted else Gauge(points)


def _histogram(family: Family, scene: Scene, time: int) -> Histogram:
    found = family.distributions(scene) if family.distributions is not None else ()
    return Histogram(list(_spread(family, found, time)), AggregationTemporality.CUMULATIVE)


def _spread(family: Family, found: Iterable[Distribution], time: int) -> Iterator[HistogramDataPoint]:
    """How many there were in each bucket; the shortest and the longest are not known, and not sent."""
    for one in found:
        yield HistogramDataPoint(
            attributes=_attributes(family, one.labels),
            start_time_unix_nano=UNKNOWN_START,
            time_unix_nano=time,
            count=sum(one.counts),
            sum=one.sum,
            bucket_counts=list(one.counts),
            explicit_bounds=list(family.bounds),
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
        )


def _attributes(family: Family, labels: Labels) -> dict[str, str]:
    """An empty label is none, as in Prometheus."""
    return {name: clean(value) for name, value in zip(family.labels, labels, strict=True) if value}
