"""The proof without a Grafana: real daemons, real training processes, a real Prometheus and a real
VictoriaMetrics behind it; every query of every dashboard is executed on both."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.tools.grafana_preview.answers import Board, Prometheus, QueryError, Span, answer, panels, settle
from docs.tools.grafana_preview.charts import DRAW
from docs.tools.grafana_preview.sheet import write
from grafana.build import HERE
from monitor.model.owner import own_uid, user_name
from tests.conftest import require_program, wait_for
from tests.integration.grafana.contact_sheet import CHOSEN
from tests.integration.grafana.stage import FIXED, MANY, NAIVE, central, stage

VIEWS: dict[str, list[dict[str, str]]] = {
    "cluster": [{}],
    "node": [{"instance": "gpu-node-1"}, {"instance": "gpu-node-2"}],
    "run": [{"run": NAIVE}, {"run": MANY}, {"run": FIXED}],
    "compare": [{"run_a": NAIVE, "run_b": FIXED}],
}
"""Each query must return something in at least one of its dashboard's views."""

pytestmark = pytest.mark.slow


class Staged(NamedTuple):
    """What to query, and the time range; Prometheus writes to the centre."""

    prometheus: Prometheus
    span: Span
    central: Prometheus | None


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staged]:
    program, folder = require_program("prometheus"), tmp_path_factory.mktemp("stage")
    with ExitStack() as stack:
        port = stack.enter_context(central(folder)) if shutil.which("victoria-metrics") else None
        asked, span = stack.enter_context(stage(program, folder, 36.0, written_to=port))
        there = Prometheus(f"http://127.0.0.1:{port}") if port else None
        if there:
            wait_for(lambda: there.instant("gpumon:rank_skew:ratio", span.end))
        yield Staged(asked, span, there)


@pytest.fixture
def staged(whole: Staged) -> tuple[Prometheus, Span]:
    return whole.prometheus, whole.span


@pytest.fixture(params=["prometheus", "victoria-metrics"])
def engine(whole: Staged, request: pytest.FixtureRequest) -> tuple[Prometheus, Span]:
    """Grafana may query either of them."""
    require_program(request.param)
    asked = whole.central if request.param == "victoria-metrics" else whole.prometheus
    assert asked is not None
    return asked, whole.span


def board_of(name: str) -> Board:
    board: Board = json.loads((HERE / "json" / f"{name}.json").read_text(encoding="utf-8"))
    return board


@pytest.mark.parametrize("name", VIEWS)
def test_every_query_of_every_panel_has_an_answer(engine: tuple[Prometheus, Span], name: str) -> None:
    board = board_of(name)
    values = [settle(board, *engine, view) for view in VIEWS[name]]
    empty = []
    for panel in panels(board):
        for target in panel["targets"]:
            found = [answer(target, *engine, chosen) for chosen in values]
            if not any(found):
                empty.append(f"{panel['title']} {target['refId']}: {target['expr']}")
    assert not empty, "no answer to:\n" + "\n".join(empty)


@pytest.mark.parametrize("name", VIEWS)
def test_every_mark_has_its_moment(staged: tuple[Prometheus, Span], name: str) -> None:
    """Marks are placed at their value: a time in milliseconds within the hour."""
    board = board_of(name)
    values = [settle(board, *staged, view) for view in VIEWS[name]]
    for note in board["annotations"]["list"]:
        found = [one for chosen in values for one in answer(note["target"], *staged, chosen)]
        assert found, f"no answer to: {note['expr']}"
        moments = [float(value) / 1000 for one in found for _, value in one["values"]]
        assert all(abs(moment - staged[1].end) < 3600 for moment in moments), note["name"]


def test_the_cluster_adds_up(staged: tuple[Prometheus, Span]) -> None:
    """GIVEN 8 GPUs, one of them lost THEN every GPU is in exactly one condition."""
    asked, span = staged
    counted = {one["metric"]["condition"]: float(one["value"][1])
               for one in asked.instant("count by (condition) (gpumon:gpu_condition)", span.end)}  # fmt: skip
    assert sum(counted.values()) == 8 and counted["lost"] == 1 and counted["starved"] >= 1
    wasted = float(asked.instant("sum(gpumon:wasted_gpus:sum)", span.end)[0]["value"][1])
    of_runs = float(asked.instant("sum(gpumon:run_wasted_gpus:sum)", span.end)[0]["value"][1])
    assert 0 < of_runs <= 1.01 * wasted, "two averages over windows whose samples need not be the same"


def test_what_the_rules_say_about_the_staged_runs(staged: tuple[Prometheus, Span]) -> None:
    """The straggler, the lost GPU, the XID and the memory errors are seen, with the job's identity."""
    asked, span = staged
    skew = {one["metric"]["rank"]: float(one["value"][1])
            for one in asked.instant(f'gpumon:rank_skew:ratio{{run="{MANY}"}}', span.end)}  # fmt: skip
    assert max(skew, key=lambda rank: skew[rank]) == "2" and skew["2"] > 1.1
    alerts = {one["metric"]["alertname"]: one["metric"] for one in asked.instant("ALERTS", span.end)}
    assert {
        "GpumonXid",
        "GpumonMemoryErrors",
        "GpumonGpuLost",
        "GpumonThermalThrottle",
        "GpumonStraggler",
    } <= set(alerts)
    straggler = alerts["GpumonStraggler"]
    assert straggler["slurm_job"] == "4711"
    assert straggler["user"] == user_name(own_uid()), "whose ring it is, whatever the ring says"


def test_an_alert_tells_the_findings_of_its_run(staged: tuple[Prometheus, Span]) -> None:
    texts = {
        one["labels"].get("run"): one["annotations"]["description"]
        for one in staged[0].alerts("GpumonRunWaitsForData")
    }
    assert "gpumon found: " in texts[NAIVE] and " input.bound" in texts[NAIVE]


def test_the_slurm_job_is_known_without_configuration(staged: tuple[Prometheus, Span]) -> None:
    """GIVEN a task with nothing but Slurm's own variable THEN GPU series can be joined to the job."""
    asked, span = staged
    joined = asked.instant(
        "sum by (slurm_job) ("
        "gpumon_gpu_power_watts * on (job, instance, uuid) group_left (run) gpumon_gpu_run "
        "* on (job, instance, run) group_left (slurm_job) gpumon_run_info)",
        span.end,
    )
    assert {"77", "4711"} <= {one["metric"]["slurm_job"] for one in joined}


def test_exemplars_name_the_run_and_the_step(staged: tuple[Prometheus, Span]) -> None:
    found = staged[0].exemplars("gpumon_rank_step_seconds_bucket", staged[1])
    labels = [one["labels"] for series in found for one in series["exemplars"]]
    assert {one["run"] for one in labels} >= {NAIVE, MANY} and all(int(one["step"]) > 0 for one in labels)


def test_a_wrong_query_is_an_error(staged: tuple[Prometheus, Span]) -> None:
    with pytest.raises(QueryError, match="parse error"):
        staged[0].instant("sum(", staged[1].end)


def test_contact_sheets_are_drawn(staged: tuple[Prometheus, Span], tmp_path: Path) -> None:
    """Two of them have every kind of panel but one; each kind of panel has a drawing."""
    made = write(tmp_path, *staged, {name: CHOSEN[name] for name in ("cluster", "compare")}, "from the test")
    assert all(path.stat().st_size > 50_000 for path in made)
    kinds = {panel["type"] for name in VIEWS for panel in panels(board_of(name))}
    assert kinds == {*DRAW, "table"}
