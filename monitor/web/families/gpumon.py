"""Metrics about gpumon itself: what it reads, what fails, what was left out, what it costs."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable

from monitor import __version__
from monitor.model.snapshot import Collector
from monitor.web.families.base import Family, Kind, Own, Sample, Scene

SOURCE_LABELS = ("source", "driver_version", "cuda_version", "nvml_version")
EACH = "1 per collector"
RUN = "run"
"""The reason under which a run that cannot be put together is counted: see `monitor.runs.trouble`."""
PYTHON = platform.python_version()


def _collector(name: str, kind: Kind, help: str, value: Callable[[Collector], float | None]) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        return [((collector.name,), value(collector)) for collector in scene.snapshot.collectors]

    return Family(f"gpumon_collector_{name}", kind, help, ("collector",), read, "pipeline", EACH)


def _of(name: str, kind: Kind, help: str, value: Callable[[Own], float | None], source: str) -> Family:
    def read(scene: Scene) -> Iterable[Sample]:
        return (((), value(scene.own)),)

    return Family(name, kind, help, (), read, source, "1")


def _source(scene: Scene) -> Iterable[Sample]:
    source = scene.snapshot.source
    versions = (source.driver_version, source.cuda_version, source.nvml_version)
    yield (source.kind, *(version or "" for version in versions)), 1.0


def _source_up(scene: Scene) -> Iterable[Sample]:
    source = scene.snapshot.source
    if source.kind != "none" or not source.ok:
        yield (source.kind,), float(source.ok)


def _build(scene: Scene) -> Iterable[Sample]:
    yield (__version__, str(scene.snapshot.schema), PYTHON), 1.0


def _timestamp(scene: Scene) -> Iterable[Sample]:
    yield (), scene.snapshot.time


def _interval(scene: Scene) -> Iterable[Sample]:
    yield (), scene.snapshot.interval_seconds


def _snapshots(scene: Scene) -> Iterable[Sample]:
    yield (), scene.snapshot.seq


def _dropped(scene: Scene) -> Iterable[Sample]:
    return [((what,), count) for what, count in sorted(scene.snapshot.dropped.items())]


def _left_out(scene: Scene) -> Iterable[Sample]:
    return [((what,), count) for what, count in scene.left_out.items()]


def _ring_errors(scene: Scene) -> Iterable[Sample]:
    return [((user, reason), count) for (user, reason), count in scene.ring_errors.items() if reason != RUN]


def _run_errors(scene: Scene) -> Iterable[Sample]:
    return [((user,), count) for (user, reason), count in scene.ring_errors.items() if reason == RUN]


def _rule_errors(scene: Scene) -> Iterable[Sample]:
    return [((rule,), count) for rule, count in sorted(scene.snapshot.rule_errors.items())]


def _requests(scene: Scene) -> Iterable[Sample]:
    return list(scene.own.requests.items())


FAMILIES = (
    Family("gpumon_source_info", "info", "Where GPU readings come from; source=\"simulated\" means they are not real.", SOURCE_LABELS, _source, "GPU source", "1"),
    Family("gpumon_source_up", "gauge", "1: the GPU source answers.", ("source",), _source_up, "GPU source", "1"),
    _collector("duration_seconds", "gauge", "How long the collector took last.", lambda c: c.seconds),
    _collector("success", "gauge", "1: the collector's last round worked.", lambda c: float(c.ok)),
    _collector("last_success_timestamp_seconds", "gauge", "When the collector last worked.", lambda c: c.last_success),
    _collector("failures_total", "counter", "Rounds of the collector that failed.", lambda c: c.failures),
    Family("gpumon_snapshot_timestamp_seconds", "gauge", "When the served snapshot was made; time() minus this is its age.", (), _timestamp, "pipeline", "1"),
    Family("gpumon_snapshot_interval_seconds", "gauge", "Time between two snapshots, as configured.", (), _interval, "settings", "1"),
    Family("gpumon_snapshots_total", "counter", "Snapshots made.", (), _snapshots, "pipeline", "1"),
    _of("gpumon_ticks_missed_total", "counter", "Snapshots left out because one took longer than the interval.", lambda o: o.missed_ticks, "daemon"),
    Family("gpumon_dropped_total", "counter", "What could not be kept or read, by what it was.", ("what",), _dropped, "collectors", "1 per kind, about 6"),
    Family("gpumon_ring_errors_total", "counter", "Rings that could not be used, had to wait or were displaced, by owner.", ("user", "reason"), _ring_errors, "rings", "1 per user and reason, at most 256"),
    Family("gpumon_run_errors_total", "counter", "Runs that could not be put together, by their owner.", ("user",), _run_errors, "rings", "1 per user, at most 256"),
    Family("gpumon_rule_errors_total", "counter", "Rules of the advice that failed.", ("rule",), _rule_errors, "advice", "1 per failing rule"),
    Family("gpumon_metrics_left_out", "gauge", "What the caps keep out of this page now.", ("what",), _left_out, "metrics", "4"),
    Family("gpumon_http_requests_total", "counter", "Requests answered.", ("route", "code"), _requests, "web", "1 per route and code, about 20"),
    _of("gpumon_http_streams", "gauge", "Clients that follow the live stream.", lambda o: len(o.streams), "web"),
    _of("gpumon_metrics_render_seconds", "gauge", "What rendering this page cost last time.", lambda o: o.render_seconds, "web"),
    Family("gpumon_build_info", "info", "Versions of gpumon, its snapshot schema and Python.", ("version", "schema", "python"), _build, "package", "1"),
)  # fmt: skip
