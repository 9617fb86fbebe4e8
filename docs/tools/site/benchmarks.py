"""The list of benchmarks, from the files on disk: what each measures, when and with what command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[2] / "benchmarks"
HEAD = """# Benchmarks

Every figure was written by the command beside it, on a shared machine with 2 cores and no GPU: ratios are what to
look at, and nothing was measured on a real GPU. `make bench` runs them all.

| what | date | command |
|---|---|---|
"""


def page() -> str:
    return HEAD + "".join(f"{row}\n" for row in _rows())


def menu() -> list[object]:
    """What the site's menu lists under Benchmarks."""
    return ["benchmarks/index.md", *({_title(path): f"benchmarks/{path.name}"} for path in _results())]


def _results() -> list[Path]:
    return sorted(RESULTS.glob("*.md"))


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")


def _data(path: Path) -> dict[str, Any]:
    """What the command wrote beside its page, where it did."""
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found if isinstance(found, dict) else {}


def _rows() -> Iterator[str]:
    for path in _results():
        data = _data(path.with_suffix(".json"))
        date, command = data.get("date", "–"), data.get("command", "")
        yield f"| [{_title(path)}]({path.name}) | {str(date)[:10]} | {f'`{command}`' if command else '–'} |"
