"""Dashboards as files: fresh, on the grid, complete, and only querying what exists."""

from __future__ import annotations

import json
import re
import warnings
from itertools import combinations
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.process_collector import ProcessCollector

from docs.tools.grafana_preview.answers import Board, QueryError, fill, panels
from grafana.build import HERE, alert_groups, main, outputs, recording_groups, without_strays
from grafana.rules.recording import CONDITIONS
from grafana.style import CONDITION_COLORS, PHASE_COLORS
from monitor.web.families import FAMILIES
from sdk.ring import PHASES

BOARDS: dict[str, Board] = {
    path.stem: json.loads(path.read_text()) for path in sorted((HERE / "json").glob("*.json"))
}
UNITS = {"none", "percentunit", "s", "bytes", "Bps", "watt", "celsius"}
NAMES = re.compile(r"\b(?:gpumon[_:][a-zA-Z_:0-9]+|process_\w+)")

each_board = pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)


def known_names() -> set[str]:
    names = {family.name for family in FAMILIES}
    names |= {one.name for family in ProcessCollector(registry=None).collect() for one in family.samples}
    for family in FAMILIES:
        if family.kind == "histogram":
            names |= {f"{family.name}_{suffix}" for suffix in ("bucket", "count", "sum")}
    return names | {rule["record"] for group in recording_groups()["groups"] for rule in group["rules"]}


def expressions(board: Board) -> list[str]:
    asked = [target["expr"] for panel in panels(board) for target in panel["targets"]]
    asked += [note["expr"] for note in board["annotations"]["list"]]
    return asked + [
        variable["query"] for variable in board["templating"]["list"] if variable["type"] == "query"
    ]


def test_the_checked_in_files_are_what_the_code_writes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, f"run `python -m grafana.build`: {capsys.readouterr().out}"


@each_board
def test_the_sdk_reads_back_what_it_wrote(board: Board) -> None:
    """The schema knows every field: nothing is lost on the way through its own model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        again = json.loads(json.dumps(Dashboard.from_json(board), cls=JSONEncoder))
    again = without_strays(again)
    for shown in (*again["links"], *again["annotations"]["list"]):
        del shown["placement"]  # its default; we leave it out on purpose
    assert again == board


def test_building_twice_gives_the_same() -> None:
    assert list(outputs()) == list(outputs())


@each_board
def test_only_metrics_that_exist_are_asked_for(board: Board) -> None:
    asked = {name for expr in expressions(board) for name in NAMES.findall(expr)}
    assert asked - known_names() == set()


def test_rules_only_use_metrics_that_exist() -> None:
    groups = recording_groups()["groups"] + alert_groups()["groups"]
    asked = {name for group in groups for rule in group["rules"] for name in NAMES.findall(rule["expr"])}
    assert asked - known_names() == set()


@each_board
def test_panels_lie_on_the_grid_without_overlap(board: Board) -> None:
    everything = [*board["panels"], *(inner for row in board["panels"] for inner in row.get("panels", []))]
    boxes = [(panel["title"], panel["gridPos"]) for panel in everything]
    for title, box in boxes:
        assert box["x"] >= 0 and box["x"] + box["w"] <= 24 and box["h"] > 0, title
    for (first, a), (second, b) in combinations(boxes, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        apart = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or apart, f"{first} lies over {second}"


@each_board
def test_every_row_of_panels_is_filled(board: Board) -> None:
    lines: dict[int, int] = {}
    for panel in panels(board):
        lines[panel["gridPos"]["y"]] = lines.get(panel["gridPos"]["y"], 0) + panel["gridPos"]["w"]
    assert set(lines.values()) == {24}


@each_board
def test_ids_and_titles_are_unique(board: Board) -> None:
    own = {id(panel): panel["id"] for panel in [*board["panels"], *panels(board)]}
    assert len(set(own.values())) == len(own) and min(own.values()) >= 1
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(titles)) == len(titles)


@each_board
def test_every_panel_says_what_it_shows(board: Board) -> None:
    for panel in panels(board):
        where = f"{board['title']}: {panel['title']}"
        assert panel["description"].endswith("."), where
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, where
        assert panel["datasource"]["uid"] == "${datasource}", where
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}", where
            assert panel["type"] == "table" or target["legendFormat"] != "__auto", where
        if panel["type"] == "table":
            assert_table(panel, where)


def assert_table(panel: dict[str, Any], where: str) -> None:
    """Joined by a label every query has; each value column shown comes from a query."""
    steps = {step["id"]: step["options"] for step in panel["transformations"]}
    titles = set(steps["organize"]["renameByName"].values())
    assert {one["matcher"]["options"] for one in panel["fieldConfig"]["overrides"]} == titles, where
    assert all(target["format"] == "table" and target["instant"] for target in panel["targets"]), where
    if "sortBy" in steps:
        assert steps["sortBy"]["sort"][0]["field"] in titles, where
    refs = {target["refId"] for target in panel["targets"]}
    used = {field[-1] for field in steps["organize"]["renameByName"] if field.startswith("Value #")}
    assert used <= refs, where


@each_board
def test_job_and_machine_can_be_chosen_and_nothing_can_be_changed(board: Board) -> None:
    """Edits to a provisioned dashboard are lost at the next start."""
    assert [one["name"] for one in board["templating"]["list"]][:3] == ["datasource", "job", "instance"]
    assert board["editable"] is False
    assert board["schemaVersion"] == 41, "that of the Grafana in compose.yaml"
    asked = [expr for expr in expressions(board) if "ALERTS{" not in expr and "{" in expr]
    assert [expr for expr in asked if 'job=~"$job"' not in expr] == []


@each_board
def test_variables_are_defined_and_links_lead_somewhere(board: Board) -> None:
    first, *rest = board["templating"]["list"]
    assert (first["name"], first["type"], first["query"]) == ("datasource", "datasource", "prometheus")
    names = {variable["name"] for variable in rest} | {
        "__range",
        "__rate_interval",
        "__range_s",
        "__interval",
    }
    for expr in expressions(board):
        fill(expr, dict.fromkeys(names, "x"))
    uids = {other["uid"] for other in BOARDS.values()}
    linked = set(re.findall(r"/d/([\w-]+)", json.dumps(board)))
    assert linked <= uids and {link["url"].split("?")[0] for link in board["links"]} == {
        f"/d/{uid}" for uid in uids - {board["uid"]}
    }
    for variable in re.findall(r"var-(\w+)=", json.dumps(board)):
        assert any(
            variable == one["name"] for other in BOARDS.values() for one in other["templating"]["list"]
        )


def test_an_unknown_variable_is_an_error() -> None:
    with pytest.raises(QueryError, match=r"\$nobody"):
        fill('up{run="$nobody"}', {})


def test_colours_cover_every_condition_and_phase() -> None:
    assert set(CONDITION_COLORS) == set(CONDITIONS)
    assert set(PHASES) < set(PHASE_COLORS)
