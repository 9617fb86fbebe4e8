"""Every dashboard compiles as a literal of Grafana's own published types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.build import HERE
from tests.conftest import require_program
from tests.integration.grafana.schema_check import SCHEMA, complaints, install

pytestmark = pytest.mark.slow


def boards() -> dict[str, dict[str, Any]]:
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (HERE / "json").glob("*.json")
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_program("node")
    require_program("npm")
    folder = tmp_path_factory.mktemp("schema")
    install(folder)
    return folder


def test_the_dashboards_are_what_grafana_s_types_say(installed: Path) -> None:
    assert complaints(installed, boards()) == []


def test_a_stray_key_and_a_wrong_word_are_seen(installed: Path) -> None:
    """The check sees what it is for: a key no panel has, an option of another panel, a word that is none."""
    board = boards()["cluster"]
    stat = next(panel for panel in board["panels"] if panel["type"] == "stat")
    changes: tuple[dict[str, object], ...] = (
        {"colour": "red"},
        {"options": {"legend": {}}},
        {"options": {"colorMode": "loud"}},
    )
    for change in changes:
        changed = {**board, "panels": [{**stat, **change}]}
        assert len(complaints(installed, {"wrong": changed})) == 1, change


def test_the_types_are_those_of_the_grafana_that_is_started() -> None:
    compose = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))
    assert compose["services"]["grafana"]["image"] == f"grafana/grafana:{SCHEMA}"
