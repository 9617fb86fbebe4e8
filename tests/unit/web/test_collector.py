"""prometheus-client is the reference: our writer writes what the client makes of the same snapshot."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from monitor.model.snapshot import Snapshot
from monitor.web.collector import SnapshotCollector
from monitor.web.exposition import Writer
from monitor.web.families import FAMILIES
from monitor.web.families.base import Limits, Own, make_scene
from monitor.web.metrics import Metrics
from tests import scene
from tests.unit.web.test_metrics import OWN

ODD_NAMES = ("", "\ud800", 'a "quoted"\\ name\nin\r\0lines', "ünïcode", "x" * 200)


def registry(snapshot: Snapshot) -> CollectorRegistry:
    made = CollectorRegistry()
    made.register(SnapshotCollector(lambda: snapshot, own=OWN))
    return made


def odd() -> Snapshot:
    """Names that need escaping, exemplars that are too long, numbers of every size."""
    base = scene.run()
    runs = [msgspec.structs.replace(base, id=f"{at}{name}", name=name) for at, name in enumerate(ODD_NAMES)]
    scalars = {"large": 1.7e300, "small": -1e-9, "not": float("nan"), "wide": 123456789012.5}
    ranks = tuple(msgspec.structs.replace(rank, scalars=scalars, steps=2**53) for rank in base.ranks)
    return scene.changed(runs=(*runs, msgspec.structs.replace(base, id="numbers", ranks=ranks)))


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
@pytest.mark.parametrize("snapshot", [scene.snapshot(), odd()], ids=["scene", "odd"])
def test_our_page_is_the_clients_byte_for_byte(snapshot: Snapshot, openmetrics: bool) -> None:
    """GIVEN a snapshot WHEN the client and our writer write it THEN no byte differs, even when our writer
    reuses its lines."""
    generate = generate_openmetrics if openmetrics else generate_latest
    theirs = generate(registry(snapshot)).decode().splitlines()
    writer = Writer(FAMILIES, openmetrics=openmetrics)
    for _ in range(2):
        ours = writer.render(make_scene(snapshot, OWN, Limits())).decode().splitlines()
        assert ours == theirs
    assert len(theirs) > 250


def test_a_registry_knows_the_names_before_there_is_a_snapshot() -> None:
    """GIVEN a collector whose snapshots fail WHEN it is registered THEN it is not asked for one, and a second
    collector with the same names is refused."""

    def none() -> Snapshot:
        raise AssertionError("nobody asked for a snapshot")

    made = CollectorRegistry()
    made.register(SnapshotCollector(none))
    with pytest.raises(ValueError, match="gpumon_gpu_up"):
        made.register(SnapshotCollector(none))


def test_the_page_has_what_the_client_says_of_the_process() -> None:
    """The names are the client's, so that common process dashboards work."""
    page = Metrics(Own(), Limits()).page(scene.snapshot(), openmetrics=False).plain.decode()
    found = {family.name for family in parse_text(page)}
    wanted = {"process_cpu_seconds", "process_resident_memory_bytes", "process_start_time_seconds"}
    assert wanted | {"process_open_fds", "python_info", "gpumon_gpu_up"} <= found
    assert {family.name for family in GCCollector(CollectorRegistry()).collect()} <= found
