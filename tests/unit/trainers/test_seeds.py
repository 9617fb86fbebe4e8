"""Every id of the seed documents has a place, and the place exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COUNTS = {"S0": 8, "S1": 9, "S2": 8, "S3": 9, "S4": 9}
ROWS = re.findall(
    r"^\| (S\d\.\d) \| (.+) \|$", (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8"), re.M
)


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    targets = [t for node in ast.walk(tree) if isinstance(node, ast.Assign) for t in node.targets]
    return found | {target.id for target in targets if isinstance(target, ast.Name)}


def test_every_id_is_in_the_table() -> None:
    wanted = {f"{document}.{n}" for document, count in COUNTS.items() for n in range(1, count + 1)}
    assert {row for row, _ in ROWS} == wanted


@pytest.mark.parametrize(("seed", "places"), ROWS)
def test_its_places_exist(seed: str, places: str) -> None:
    for place in re.findall(r"`([^`]+)`", places):
        file, _, name = place.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{seed}: {file}"
        assert not name or name in names_in(path), f"{seed}: no {name} in {file}"
