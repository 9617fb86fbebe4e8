"""Rows on disk as they are made: a stopped run goes on where it was, if code and script are the same."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from functools import cache
from pathlib import Path

from tests.benchmarks.device.case import Case
from tests.benchmarks.device.judge import Row

ROOT = Path(__file__).parents[3]
FILE = ROOT / "out" / "benchmarks" / "diagnosis_device.jsonl"
FIRST = Path(__file__).with_name("first_looks.jsonl")
"""What was said when gpumon first saw a script, right or wrong: kept for good."""


@cache
def product() -> str:
    """Changes with gpumon's own code."""
    digest = hashlib.sha256()
    for folder in ("monitor", "sdk"):
        for path in sorted((ROOT / folder).rglob("*.[pch]*")):
            if path.suffix in (".py", ".c", ".h"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def keep(row: Row) -> None:
    FILE.parent.mkdir(parents=True, exist_ok=True)
    _append(FILE, row)
    if row.look == "first look" and not row.skipped:
        _append(FIRST, row)


def _append(path: Path, row: Row) -> None:
    with path.open("a") as file:
        file.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")


def kept() -> dict[str, Row]:
    """Script → its last row by this code."""
    return {row.script: row for row in _read(FILE) if row.product == product()}


def first_looks() -> list[Row]:
    return _read(FIRST)


def _read(path: Path) -> list[Row]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def done_with(case: Case, rows: dict[str, Row]) -> Row | None:
    row = rows.get(case.script)
    return row if row and row.digest == case.digest() and not row.error else None


def forget() -> None:
    FILE.unlink(missing_ok=True)
