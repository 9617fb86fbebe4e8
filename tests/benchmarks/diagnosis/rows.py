"""What was measured so far, a file for each case: a long benchmark is cut into slices and taken up again."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.benchmarks.diagnosis.catalog import Case
from tests.benchmarks.diagnosis.measure import Result
from tests.benchmarks.diagnosis.truth import ROOT

FOLDER = ROOT / "out" / "diagnosis"


def keep(result: Result, folder: Path = FOLDER) -> None:
    write(_path(result.script, folder), dataclasses.asdict(result))


def kept(case: Case, folder: Path = FOLDER) -> Result | None:
    """The row of a case; None when it has not been measured in this round."""
    found = read(_path(case.name, folder))
    return Result(**found) if found else None


def begin_anew(folder: Path = FOLDER) -> None:
    """Without anything of the round before."""
    shutil.rmtree(folder, ignore_errors=True)


def forget(cases: Iterable[Case], folder: Path = FOLDER) -> None:
    for case in cases:
        _path(case.name, folder).unlink(missing_ok=True)


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def _path(name: str, folder: Path) -> Path:
    return folder / f"{name.replace(' --', '-')}.json"
