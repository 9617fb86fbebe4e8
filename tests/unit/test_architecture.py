"""The files and folders named in ARCHITECTURE.md exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MONITOR = ("advice", "model", "pipeline", "pipeline/collectors", "runs")
BASES = ("", "monitor", "sdk/core", "tests", "trainers", *(f"monitor/{room}" for room in MONITOR))
NAMED = re.compile(r"`([\w./]*\w\.(?:py|c|md)|[\w./]+/)`")


def test_every_file_and_folder_it_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = sorted(name for name in set(NAMED.findall(text)) if "NAME" not in name)
    assert len(named) > 50
    assert [name for name in named if not any((ROOT / base / name).exists() for base in BASES)] == []
