"""Whatever a snapshot lacks and however small the terminal: no exception, no line too long."""

# ruff: noqa: E501 — one snapshot that lacks everything, on few lines
from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

from monitor.comparison.compare_runs import compare
from monitor.model import facts
from monitor.model.clock import Moment
from monitor.model.finding import Finding
from monitor.model.gpu import Gpu, MigInstance, Source
from monitor.model.history import RunRecord
from monitor.model.host import Host, Process
from monitor.model.nodes import Node, Waste
from monitor.model.run import Rank, Run, Window
from monitor.model.snapshot import Snapshot
from monitor.tui.frame import Frame, Hub, Update
from monitor.tui.text import Line, Room
from monitor.tui.views import (
    answer,
    finding,
    findings,
    gpu,
    gpus,
    header,
    history,
    processes,
    run,
    run_details,
    run_graphs,
    run_nodes,
    runs,
)
from monitor.tui.views import host as host_view
from monitor.tui.views.card import card
from tests.tui import scenes
from tests.tui.stage import pictures, pressing, staged

WIDTHS = (20, 34, 60, 80, 113, 200)
BARE = Run("r", "r", "running", 0.0, ())
SPARSE = facts.complete(Snapshot(
    seq=1, time=10.0, monotonic=10.0, interval_seconds=1.0, source=Source("nvml"), host=Host("h"),
    gpus=(Gpu(0, "g0"), Gpu(1, "g1", state="error"), Gpu(2, "g2", mig_enabled=True, mig=(MigInstance("m"),)), Gpu(3, "g3", state="hung", age_seconds=9e9)),
    processes=(Process(1), Process(2, parent=2), Process(3, parent=4), Process(4, parent=3)),
    runs=(BARE, Run("s", "名前が長い\x1b[31m run", "stalled", 0.0, (Rank(0, "stalled", 1),), timeline=(Window(0.0, 0.0, 0, 0),), nodes=(Node("名前が長い\x1b[31m node" * 4, "lost"), Node("", "running", (0, 2, 3))), waste=Waste()), Run("t", "", "failed", 9e9, (), ended=1.0)),
    findings=(Finding("a.b", "critical", ""), Finding("c.d", "hint", "x" * 300, run="gone", rank=7, gpu="gone", evidence={"": None, "deep": {"a": [1, {"b": 2}]}})),
))  # fmt: skip


def frame_of(snapshot: Snapshot) -> Frame:
    hub = Hub([("h", "")], lambda: Moment(10.0, 10.0))
    hub.take([Update(0, snapshot, None, Moment(10.0, 10.0))])
    return hub.frame()


def lines_of(frame: Frame, room: Room) -> Iterable[Line]:
    host = frame.hosts[0]
    assert host.snapshot is not None
    tables = (header.header, answer.block, gpus.table, runs.table, findings.table, host_view.table)
    for table in tables:
        made = table(frame, room)
        yield from (*made.head, *made.rows)
    for tree in (False, True):
        yield from processes.table(frame, room, processes.Order(tree=tree)).rows
    for one in host.snapshot.gpus:
        yield from (
            *gpu.title(host, one, room),
            *gpu.readings(host, one, room),
            *gpu.throttle(host, one, room),
        )
        yield from (*gpu.graphs(host, one, room), *card(host, one, room))
    for one_run in host.snapshot.runs:
        parts: tuple[Callable[[Run, Room], list[Line]], ...] = (
            run.phases, run_graphs.waterfall, run_graphs.graphs, run_nodes.nodes, run_details.ranks, run_details.stalls, run_details.loader, run_details.hotspots, run_details.scalars, run_details.configuration,
        )  # fmt: skip
        yield from run.summary(one_run, room)
        yield from (made for part in parts for made in part(one_run, room))
    for one_finding in host.snapshot.findings:
        yield from (*finding.about(frame, host, one_finding, room), *finding.change(one_finding, room))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "snapshot", [SPARSE, *(make(5) for make in scenes.SCENES.values())], ids=["sparse", *scenes.SCENES]
)
def test_every_view_takes_every_snapshot(snapshot: Snapshot, width: int) -> None:
    for plain in (False, True):
        for made in lines_of(frame_of(snapshot), Room(width, 20, plain)):
            assert made.text.isprintable()


def test_nothing_compared_with_nothing_is_no_error() -> None:
    found = compare(RunRecord(BARE), RunRecord(BARE))
    assert history.comparison(found, Room(80, 20))


@pytest.mark.parametrize(
    "keys", [(), ("enter",), ("tab", "enter"), ("tab", "tab", "enter"), ("p",), ("question_mark",)]
)
def test_odd_sizes_are_survived(keys: tuple[str, ...]) -> None:
    sizes = [(80, 24), (20, 5), (40, 12), (79, 23), (300, 100)]
    texts = asyncio.run(pictures(staged("data-bound"), sizes, pressing(*keys)))
    assert [len(text.splitlines()) for text in texts] == [rows for _, rows in sizes]
