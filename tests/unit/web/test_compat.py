"""dcgm-exporter's names: all of its default counters, in its units, and absent where we know nothing."""

from __future__ import annotations

import subprocess

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics

from monitor.model.gpu import Gpu, Holder
from monitor.model.snapshot import Snapshot
from monitor.web.exposition import Writer
from monitor.web.families import FAMILIES, families
from monitor.web.families.base import Limits, Own, make_scene
from monitor.web.families.dcgm import ROWS
from monitor.web.peers import OTHERS
from tests import scene
from tests.conftest import require_program
from tests.unit.web.test_metrics import samples, value

DOCUMENTED = {
    "DCGM_FI_DEV_SM_CLOCK": ("gauge", "MHz", 1700),
    "DCGM_FI_DEV_MEM_CLOCK": ("gauge", "MHz", 2600),
    "DCGM_FI_DEV_MEMORY_TEMP": ("gauge", "C", 70),
    "DCGM_FI_DEV_GPU_TEMP": ("gauge", "C", 61),
    "DCGM_FI_DEV_POWER_USAGE": ("gauge", "W", 310.5),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("counter", "mJ", 123_456_700),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("counter", "", 3),
    "DCGM_FI_DEV_GPU_UTIL": ("gauge", "%", 42),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("gauge", "%", 20),
    "DCGM_FI_DEV_ENC_UTIL": ("gauge", "%", 0),
    "DCGM_FI_DEV_DEC_UTIL": ("gauge", "%", 0),
    "DCGM_FI_DEV_XID_ERRORS": ("gauge", "", 79),
    "DCGM_FI_DEV_FB_FREE": ("gauge", "MiB", 39 << 10),
    "DCGM_FI_DEV_FB_USED": ("gauge", "MiB", 40 << 10),
    "DCGM_FI_DEV_FB_RESERVED": ("gauge", "MiB", 1),
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": ("counter", "KiB", 3 << 30),
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": ("gauge", "", 1),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("counter", "", 0),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("counter", "", 1),
    "DCGM_FI_DEV_RETIRED_SBE": ("counter", "", 2),
    "DCGM_FI_DEV_RETIRED_DBE": ("counter", "", 1),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": ("gauge", "", 0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gauge", "", 0.6),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("gauge", "", 0.3),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("gauge", "", 0.2),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("gauge", "B/s", 1e9),
    "DCGM_FI_PROF_PCIE_RX_BYTES": ("gauge", "B/s", 2e9),
}
"""Name, type and unit as documented in etc/default-counters.csv and etc/dcp-metrics-included.csv of
dcgm-exporter 4, and the value of the scene's GPU in that unit."""


def render(snapshot: Snapshot, *, openmetrics: bool = False) -> str:
    made = make_scene(snapshot, Own(), Limits())
    return Writer(families("dcgm"), openmetrics=openmetrics).render(made).decode()


def test_every_documented_counter_is_there_in_its_unit() -> None:
    old = msgspec.structs.replace(scene.gpu().errors, retired_pages_single_bit=2, retired_pages_double_bit=1)
    page = render(scene.changed(gpus=(msgspec.structs.replace(scene.gpu(), errors=old),)))
    assert {row.name: row.kind for row in ROWS} == {name: kind for name, (kind, _, _) in DOCUMENTED.items()}
    for name, (kind, unit, expected) in DOCUMENTED.items():
        assert f"# TYPE {name} {kind}\n" in page
        assert unit in page.partition(f"# HELP {name} ")[2].partition("\n")[0]
        parsed = name if kind == "gauge" else f"{name}_total"  # prometheus-client's name for every counter
        assert value(page, parsed, gpu="0") == pytest.approx(expected), name
        assert f"\n{name}{{" in page


def test_labels_are_those_of_dcgm_exporter() -> None:
    found = [labels for name, labels in samples(render(scene.snapshot())) if name == "DCGM_FI_DEV_GPU_UTIL"]
    assert [dict(labels) for labels in found] == [
        {
            "gpu": "0",
            "UUID": "GPU-0",
            "pci_bus_id": "0000:10:00.0",
            "device": "nvidia0",
            "modelName": "Test H100",
            "Hostname": "node",
            "DCGM_FI_DRIVER_VERSION": "550.54",
            "container": "main",
            "namespace": "team-a",
            "pod": "resnet-0",
        }
    ]


def test_a_shared_gpu_is_nobodys() -> None:
    shared = (Holder(pod="a", namespace="x"), Holder(pod="b", namespace="x"))
    gpu = msgspec.structs.replace(scene.gpu(), holders=shared)
    page = render(scene.changed(gpus=(gpu,)))
    assert value(page, "DCGM_FI_DEV_GPU_UTIL", pod="", namespace="", container="") == pytest.approx(42)


def test_what_a_card_does_not_tell_is_absent() -> None:
    page = render(scene.changed(gpus=(Gpu(0, "GPU-0"), scene.lost_gpu(1)), runs=(), findings=()))
    assert "DCGM_" not in page


def test_without_the_option_there_is_none() -> None:
    assert families(None) == FAMILIES and not any(one.name.startswith("DCGM") for one in FAMILIES)


def test_the_page_is_valid_in_both_formats() -> None:
    opened = {one.name: one for one in parse_openmetrics(render(scene.snapshot(), openmetrics=True))}
    assert opened["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"].type == "unknown"
    promtool = require_program("promtool")
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=render(scene.snapshot()),
        text=True,
        capture_output=True,
    )
    assert done.returncode == 3, "it reads, and its names are not to promtool's taste"
    assert all("DCGM_" in line for line in done.stderr.splitlines())


def test_the_table_of_peers_is_about_families_that_exist() -> None:
    names = {family.name for family in FAMILIES}
    assert set(OTHERS) <= names and {row.same_as for row in ROWS} <= names
