"""Other parsers read `/metrics`: what we write must mean the same to them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from monitor.model.gpu import Gpu, GpuProcess, Holder, Source
from monitor.model.owner import RingCount
from monitor.model.snapshot import HISTORY_STEPS, Snapshot
from monitor.web.exposition import Writer, clean, number
from monitor.web.families import FAMILIES
from monitor.web.families.base import Limits, Own, make_scene
from tests import scene
from tests.conftest import require_program

GOLDEN = Path(__file__).parents[2] / "golden"
OWN = Own(requests={("/metrics", "200"): 3})


def render(snapshot: Snapshot, *, openmetrics: bool = False, limits: Limits | None = None) -> str:
    made = make_scene(snapshot, OWN, limits or Limits(per_link=True))
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
    """A family nothing can fill would be an empty promise."""
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
        assert re.fullmatch(r"gpumon_[a-z0-9_]+", family.name)
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert (family.kind == "info") == family.name.endswith("_info")
        assert family.help.endswith(".") and family.source and family.cost
        allowed = {"pid"} if family.name.startswith("gpumon_gpu_process_") else set()
        assert {"pid", "command", "instance", "job"} & set(family.labels) == allowed
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_a_lost_gpu_says_so_and_shows_no_reading_as_current() -> None:
    page = render(scene.snapshot())
    assert value(page, "gpumon_gpu_up", gpu="1") == 0
    assert value(page, "gpumon_gpu_state", gpu="1", state="lost") == 1
    assert value(page, "gpumon_gpu_reading_age_seconds", gpu="1") == 12
    assert value(page, "gpumon_gpu_utilization_ratio", gpu="1") is None
    assert value(page, "gpumon_gpu_utilization_ratio", gpu="0") == 0.42


def test_what_a_card_does_not_answer_is_absent_not_zero() -> None:
    silent = scene.changed(gpus=(Gpu(0, "GPU-0"),), runs=(), findings=())
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
    assert clean("a\r\0b") == "a  b"
    assert clean("\ud800").isascii()


def test_values_are_written_as_prometheus_reads_them() -> None:
    written = [number(one) for one in (True, 3, 0.1, float("nan"), float("inf"), -float("inf"), 1e22)]
    assert written == ["1.0", "3.0", "0.1", "NaN", "+Inf", "-Inf", "1e+22"]


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


def test_whose_gpu_it_is() -> None:
    page = render(scene.snapshot())
    mine = {"pid": "101", "user": "ada", "slurm_job": "4711", "run": scene.RUN, "process": "python"}
    assert value(page, "gpumon_gpu_process_memory_bytes", gpu="0", **mine) == 8 << 30
    assert value(page, "gpumon_gpu_process_sm_ratio", gpu="0", **mine) == 0.4
    assert value(page, "gpumon_gpu_pod", gpu="0", namespace="team-a", pod="resnet-0", container="main") == 1
    assert value(page, "gpumon_gpu_slurm_job", gpu="0", slurm_job="4711") == 1


def test_a_crowd_on_a_gpu_is_summed_beyond_the_cap() -> None:
    crowd = tuple(GpuProcess(pid, memory_bytes=pid, sm_ratio=0.25) for pid in range(1, 8))
    silent = (*crowd, GpuProcess(99))
    page = render(
        scene.changed(gpus=(msgspec.structs.replace(scene.gpu(), processes=silent),)),
        limits=Limits(processes=3),
    )
    memory = {
        dict(labels)["pid"]: found
        for (name, labels), found in samples(page).items()
        if name == "gpumon_gpu_process_memory_bytes"
    }
    assert memory == {"7": 7, "6": 6, "5": 5, "others": 4 + 3 + 2 + 1}
    assert value(page, "gpumon_gpu_process_sm_ratio", pid="others") == 1.0
    assert value(page, "gpumon_gpu_processes", gpu="0") == 8
    assert "gpumon_gpu_process_" not in render(scene.snapshot(), limits=Limits(processes=0))


def test_holders_are_capped_and_counted() -> None:
    many = tuple(Holder(pod=f"pod-{n}", namespace="a", container="c") for n in range(5))
    page = render(
        scene.changed(gpus=(msgspec.structs.replace(scene.gpu(), holders=many),)), limits=Limits(holders=2)
    )
    assert len([1 for name, _ in samples(page) if name == "gpumon_gpu_pod"]) == 2
    assert value(page, "gpumon_metrics_left_out", what="metric_holders") == 3


def test_links_are_shown_one_by_one_only_when_asked_for() -> None:
    assert (
        value(render(scene.snapshot()), "gpumon_gpu_nvlink_link_errors_total", link="0", kind="replay") == 2
    )
    page = render(scene.snapshot(), limits=Limits())
    assert "nvlink_link_" not in page and value(page, "gpumon_gpu_nvlink_errors_total", kind="replay") == 3


def test_steps_lost_by_the_history_are_a_metric() -> None:
    page = render(scene.changed(dropped={HISTORY_STEPS: 7}))
    assert value(page, "gpumon_dropped_total", what="history.steps") == 7


def test_caps_keep_the_page_bounded_and_are_counted() -> None:
    many = scene.changed(runs=tuple(scene.run(f"run-{n}") for n in range(5)))
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
    kept = render(scene.changed(runs=(over,)))
    gone = render(scene.changed(runs=(long_over,)))
    assert value(kept, "gpumon_rank_steps_total", rank="0") == 1000
    assert value(kept, "gpumon_gpu_run") is None and value(kept, "gpumon_finding_active") is None
    assert "gpumon_rank_steps_total" not in gone


def test_families_of_runs_come_and_go_with_them() -> None:
    """They are not asked while there are no runs; a page says what one written from nothing says."""
    busy = scene.snapshot()
    idle = msgspec.structs.replace(busy, runs=())
    for openmetrics in (False, True):
        writer = Writer(FAMILIES, openmetrics=openmetrics)
        for one in (idle, busy, idle, idle, busy):
            shown = make_scene(one, Own(), Limits())
            assert writer.render(shown) == Writer(FAMILIES, openmetrics=openmetrics).render(shown)


def test_a_family_of_runs_has_no_series_without_one() -> None:
    shown = make_scene(msgspec.structs.replace(scene.snapshot(), runs=()), Own(), Limits())
    of_runs = [family for family in FAMILIES if family.of_runs]
    assert of_runs
    assert [family.name for family in of_runs if list(family.read(shown))] == []


def test_trouble_with_rings_is_counted_by_owner_and_bounded() -> None:
    trouble = [RingCount(7, "ada", "size", 9000), RingCount(7, "ada", "run", 2)]
    trouble += [RingCount(uid, f"u{uid}", "broken", 1) for uid in range(1000)]
    page = render(msgspec.structs.replace(scene.snapshot(), ring_trouble=tuple(trouble)))
    assert value(page, "gpumon_ring_errors_total", user="ada", reason="size") == 9000
    assert value(page, "gpumon_run_errors_total", user="ada") == 2
    counted = [v for (name, _), v in samples(page).items() if name == "gpumon_ring_errors_total"]
    assert sum(counted) == 10_000 and len(counted) < 300


def test_a_long_run_that_has_just_ended_is_scraped_once_more() -> None:
    """GIVEN more short runs that are over than may be shown WHEN a run older than all of them ends THEN it is
    shown: its last figures are wanted."""
    base = scene.snapshot().runs[0]
    short = [
        msgspec.structs.replace(base, id=f"s{at}", started=scene.NOW - 90 + at, ended=scene.NOW - 89 + at)
        for at in range(50)
    ]
    long = msgspec.structs.replace(base, id="long", started=scene.NOW - 5000, ended=scene.NOW - 1)
    crowd = msgspec.structs.replace(scene.snapshot(), runs=(*short, long))
    page = render(crowd, limits=Limits(runs=10))
    shown = {dict(pairs)["run"] for (name, pairs) in samples(page) if name == "gpumon_run_info"}
    assert "long" in shown and len(shown) == 10


def test_who_has_most_runs_is_left_out_first() -> None:
    """GIVEN a user with far more runs than may be shown WHEN another has two THEN both of those are."""
    base = scene.snapshot().runs[0]
    many = [
        msgspec.structs.replace(base, id=f"m{at}", owner_uid=2, started=scene.NOW + at, ended=None)
        for at in range(500)
    ]
    few = [
        msgspec.structs.replace(base, id=f"a{at}", owner_uid=1, started=1.0, ended=None) for at in range(2)
    ]
    crowd = msgspec.structs.replace(scene.snapshot(), runs=(*many, *few))
    page = render(crowd, limits=Limits(runs=10))
    shown = {dict(pairs)["run"] for (name, pairs) in samples(page) if name == "gpumon_run_info"}
    assert {"a0", "a1"} <= shown and len(shown) == 10
    assert value(page, "gpumon_metrics_left_out", what="metric_runs") == 492
