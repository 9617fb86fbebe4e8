"""The parts of a report about the hardware (GPUs, cores, memory) and about the loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from monitor.catalog.dossier import Dossier
from monitor.document import charts, scale
from monitor.document.charts import Shape
from monitor.document.markup import Markup, tag
from monitor.document.parts import section
from monitor.document.timed import across, plain_line, points_told, timed
from monitor.model.run import Window
from monitor.model.since_start import Point, Track, points
from monitor.model.units import celsius, number, percent, rate, size, visible, watts

Text = Callable[[float], str]
HOST: tuple[tuple[str, str, Text], ...] = (
    ("cpu_utilization_ratio", "CPU, all cores", percent),
    ("cpu_iowait_ratio", "Waiting for disks", percent),
    ("memory_used_bytes", "System memory in use", size),
    ("disk_read_bytes_per_second", "Read from disks", rate),
)
GPU: tuple[tuple[str, str, Text], ...] = (
    ("utilization_ratio", "use", percent),
    ("memory_used_bytes", "memory in use", size),
    ("power_watts", "power", lambda value: watts(value, None)),
    ("temperature_celsius", "temperature", celsius),
)
WINDOWS: tuple[tuple[str, Callable[[Window], float | None], Text], ...] = (
    ("GPU use", lambda window: window.gpu_utilization_ratio, percent),
    ("GPU idle", lambda window: window.starved_ratio, percent),
    ("GPU memory of the run", lambda window: window.device_memory_bytes, size),
    ("Memory of the process", lambda window: window.rss_bytes, size),
)


def beneath(dossier: Dossier) -> Markup | None:
    """Small charts on one time axis; figures nobody recorded are left out."""
    gpus = list(_of_gpus(dossier))
    charts_made = [*_of_run(dossier), *gpus, *_of_host(dossier)]
    if not charts_made:
        return None
    note = "GPUs are numbered as the run sees them" if gpus else ""
    return section("GPU, CPU and memory", tag("div", charts_made, class_="grid"), note=note)


def _of_run(dossier: Dossier) -> Iterator[Markup]:
    for title, figure, text in WINDOWS:
        values = points(dossier.stretches, figure)
        if sum(value is not None for _, value in values) > 1:  # of one there is no line
            yield _small(dossier, title, values, text)


def _of_gpus(dossier: Dossier) -> Iterator[Markup]:
    for number_of, uuid in enumerate(dossier.run.gpu_uuids):
        for field, words, text in GPU:
            yield from _track(dossier, f"gpu:{uuid}", field, f"GPU {number_of} {words}", text)


def _of_host(dossier: Dossier) -> Iterator[Markup]:
    for field, title, text in HOST:
        yield from _track(dossier, "host", field, title, text)


def _track(dossier: Dossier, subject: str, field: str, title: str, text: Text) -> Iterator[Markup]:
    for one in dossier.readings:
        if (one.subject, one.field) == (subject, field) and _worth_showing(one, text):
            yield _small(dossier, title, list(one.points), text)


def _worth_showing(one: Track, text: Text) -> bool:
    return visible(one.highest) if text is percent else bool(one.highest)


def _small(dossier: Dossier, title: str, values: list[Point], text: Text) -> Markup:
    top = 1.0 if text is percent else None
    picture = plain_line(dossier, values, text, title, top=top)
    return tag("div", tag("h3", title), picture)


def loss(dossier: Dossier) -> Markup | None:
    """Loss of the first rank, as the script reported it."""
    values = points(dossier.stretches, lambda window: window.loss)
    known = [value for _, value in values if value is not None]
    if len(known) < 2:
        return None
    up = scale.between(min(known), max(known), number)
    shapes = [Shape(charts.line(values, across(dossier), up), "line")]
    ends = f"{number(known[0])} → {number(known[-1])}"
    label, seen = f"loss over time, {ends}", points_told(values, "loss", number)
    return section("Loss", timed(dossier, shapes, up, label, told=seen), note=ends)
