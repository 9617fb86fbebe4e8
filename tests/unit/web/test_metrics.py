"""`/metrics` is read by others' parsers: what we write must mean the same to them."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from monitor.snapshot import Gpu, Snapshot, Source
from monitor.web.exposition import Writer, escape, number
from monitor.web.families import FAMILIES
from monitor.web.families.base import Limits, Own, make_scene
from monitor.web.metrics import Metrics, negotiate
from tests import scene
from tests.conftest import require_program

GOLDEN = Path(__file__).parents[2] / "golden"


def render(snapshot: Snapshot, *, openmetrics: bool = False, limits: Limits | None = None) -> str:
    own = Own(
        started=scene.NOW - 10, requests={("/metrics", "200"): 3}, cpu_seconds=1.5, resident_bytes=40 << 20
    )
    made = make_scene(snapshot, own, limits or Limits())
    return Writer(FAMILIES, openmetrics=openmetrics).render(made).decode()


def samples(page: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_text(page)
        for sample in family.samples
    }


def value(page: str, name: str, **labels: str) -> float | None:
    found = [
        v for (n, pairs), v in samples(page).items() if n == name and labels.items() <= dict(pairs).items()
    ]
    assert len(found) <= 1, f"{name} {labels} is not unique"
    return found[0] if found else None


def check_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GPUMON_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} changed: GPUMON_UPDATE_GOLDEN=1 writes it anew"


@pytest.mark.parametrize("openmetrics", [False, True], ids=["text", "openmetrics"])
def test_page_is_frozen_by_a_golden_file(openmetrics: bool) -> None:
    page = re.sub(r"(gpumon_build_info\{).*?\}", r"\1…}", render(scene.snapshot(), openmetrics=openmetrics))
    check_golden("metrics.openmetrics.txt" if openmetrics else "metrics.txt", page)


def test_promtool_finds_nothing_to_complain_about() -> None:
    promtool = require_program("promtool")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=render(scene.snapshot()), text=True, capture_output=True
    )
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_both_formats_say_the_same() -> None:
    text = samples(render(scene.snapshot()))
    opened = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse_openmetrics(render(scene.snapshot(), openmetrics=True))
        for sample in family.samples
    }
    assert text == opened
    assert len(text) > 250


def test_openmetrics_ends_with_eof_and_has_exemplars_of_run_and_step() -> None:
    page = render(scene.snapshot(), openmetrics=True)
    assert page.endswith("# EOF\n")
    exemplars = [
        (sample.labels["le"], sample.exemplar.labels, sample.exemplar.value)
        for family in parse_openmetrics(page)
        for sample in family.samples
        if sample.exemplar and sample.labels["rank"] == "0"
    ]
    assert exemplars == [
        ("0.025", {"run": scene.RUN, "step": "1000"}, 0.02),
        ("+Inf", {"run": scene.RUN, "step": "7"}, 75.0),
    ]


def test_every_family_has_a_sample_in_the_scene() -> None:
    """A family nothing can fill would be a promise nobody keeps."""
    page = render(scene.snapshot())
    missing = {family.name for family in FAMILIES if f"# TYPE {family.name} " not in page}
    assert missing == {
        "gpumon_run_ended_timestamp_seconds",
        "gpumon_run_tokens_per_second",
        "gpumon_rank_tokens_total",
        "gpumon_metrics_render_seconds",
    }


def test_names_follow_the_prometheus_rules() -> None:
    for family in FAMILIES:
        assert re.fullmatch(r"(gpumon|process)_[a-z0-9_]+", family.name)
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert (family.kind == "info") == family.name.endswith("_info")
        assert family.help.endswith(".") and family.source and family.cost
        assert not {"pid", "command", "instance", "job"} & set(family.labels)
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_a_lost_gpu_says_so_and_shows_no_reading_as_current() -> None:
    page = render(scene.snapshot())
    assert value(page, "gpumon_gpu_up", gpu="1") == 0
    assert value(page, "gpumon_gpu_state", gpu="1", state="lost") == 1
    assert value(page, "gpumon_gpu_reading_age_seconds", gpu="1") == 12
    assert value(page, "gpumon_gpu_utilization_ratio", gpu="1") is None
    assert value(page, "gpumon_gpu_utilization_ratio", gpu="0") == 0.42


def test_what_a_card_does_not_answer_is_absent_not_zero() -> None:
    silent = msgspec.structs.replace(scene.snapshot(), gpus=(Gpu(0, "GPU-0"),), runs=(), findings=())
    names = {name for name, labels in samples(render(silent)) if ("uuid", "GPU-0") in labels}
    assert names == {
        "gpumon_gpu_info", "gpumon_gpu_up", "gpumon_gpu_state", "gpumon_gpu_reading_age_seconds",
        "gpumon_gpu_processes",
    }  # fmt: skip


def test_a_machine_without_gpu_or_host_readings_still_renders() -> None:
    bare = Snapshot(1, scene.NOW, 1.0, 1.0, Source("none", detail="no driver"), scene.Host("node"))
    page = render(bare)
    assert value(page, "gpumon_source_info", source="none") == 1
    assert value(page, "gpumon_host_cpu_utilization_ratio") is None


def test_labels_are_escaped_so_that_they_come_back_whole() -> None:
    info = next(
        dict(labels)["name"]
        for name, labels in samples(render(scene.snapshot()))
        if name == "gpumon_run_info"
    )
    assert info == 'res"net\\50\nlarge'
    assert escape("a\r\0b") == "a  b"
    assert escape("\ud800").isascii()


def test_values_are_written_as_prometheus_reads_them() -> None:
    written = [number(one) for one in (True, 3, 0.1, float("nan"), float("inf"), -float("inf"), 1e22)]
    assert written == ["1", "3", "0.1", "NaN", "+Inf", "-Inf", "1e+22"]


def test_histogram_is_cumulative_and_sums_the_step_time() -> None:
    page = render(scene.snapshot())
    assert value(page, "gpumon_rank_step_seconds_bucket", rank="0", le="0.025") == 900
    assert value(page, "gpumon_rank_step_seconds_bucket", rank="0", le="60.0") == 999
    assert value(page, "gpumon_rank_step_seconds_bucket", rank="0", le="+Inf") == 1000
    assert value(page, "gpumon_rank_step_seconds_count", rank="0") == 1000
    assert value(page, "gpumon_rank_step_seconds_sum", rank="0") == 100.0


def test_runs_join_with_gpus_and_processes() -> None:
    page = render(scene.snapshot())
    assert value(page, "gpumon_gpu_run", uuid="GPU-0", run=scene.RUN) == 1
    assert value(page, "gpumon_gpu_run_memory_bytes", gpu="0", run=scene.RUN) == 8 << 30
    assert value(page, "gpumon_run_cpu_cores", run=scene.RUN, rank="0", role="worker") == 0.75
    assert value(page, "gpumon_finding_active", rule="input.no_workers", run=scene.RUN) == 1
    assert value(page, "gpumon_finding_predicted_speedup_ratio", estimate="likely") == 1.8


def test_caps_keep_the_page_bounded_and_are_counted() -> None:
    many = msgspec.structs.replace(scene.snapshot(), runs=tuple(scene.run(f"run-{n}") for n in range(5)))
    page = render(many, limits=Limits(runs=3, ranks=4, scalars=1))
    seen = samples(page)
    assert len([1 for name, _ in seen if name == "gpumon_run_info"]) == 3
    assert len([1 for name, _ in seen if name == "gpumon_rank_info"]) == 4
    assert len([1 for name, _ in seen if name == "gpumon_rank_scalar"]) == 4
    assert value(page, "gpumon_metrics_left_out", what="metric_runs") == 2
    assert value(page, "gpumon_metrics_left_out", what="metric_ranks") == 2
    assert value(page, "gpumon_metrics_left_out", what="metric_scalars") == 12


def test_series_vanish_with_their_run() -> None:
    over = msgspec.structs.replace(scene.run(), state="ended", ended=scene.NOW - 10)
    long_over = msgspec.structs.replace(scene.run(), state="ended", ended=scene.NOW - 1000)
    kept = render(msgspec.structs.replace(scene.snapshot(), runs=(over,)))
    gone = render(msgspec.structs.replace(scene.snapshot(), runs=(long_over,)))
    assert value(kept, "gpumon_rank_steps_total", rank="0") == 1000
    assert value(kept, "gpumon_gpu_run") is None and value(kept, "gpumon_finding_active") is None
    assert "gpumon_rank_steps_total" not in gone


def test_a_page_is_rendered_once_per_snapshot_and_format() -> None:
    metrics = Metrics(Own(), Limits())
    first = metrics.page(scene.snapshot(1), openmetrics=False)
    assert metrics.page(scene.snapshot(1), openmetrics=False) is first
    assert metrics.page(scene.snapshot(2), openmetrics=False) is not first
    assert gzip.decompress(first.body(True)) == first.plain
    assert first.body(True) is first.body(True)


def test_rendering_is_cheap() -> None:
    """About a microsecond a series once the prefixes are known; the bound leaves room for a busy machine."""
    wide = msgspec.structs.replace(scene.snapshot(), gpus=tuple(scene.gpu(n) for n in range(32)))
    made = make_scene(wide, Own(), Limits())
    writer = Writer(FAMILIES, openmetrics=False)
    series = sum(not line.startswith(b"#") for line in writer.render(made).splitlines())
    taken = min(_seconds(lambda: writer.render(made)) for _ in range(5))
    assert series > 2000
    assert taken / series < 5e-6


def _seconds(work: object) -> float:
    begin = time.perf_counter()
    assert callable(work)
    work()
    return time.perf_counter() - begin


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", True),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", False),
        ("text/html, application/openmetrics-text", True),
        ("application/openmetrics-text;q=broken", False),
    ],
)
def test_content_negotiation(accept: str, openmetrics: bool) -> None:
    assert negotiate(accept) is openmetrics
