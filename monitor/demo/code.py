"""The change between two versions of a function, as a diff, read from the source that runs."""

from __future__ import annotations

import ast
import difflib
import textwrap
from pathlib import Path

import monitor

SOURCE = Path(monitor.__file__).parent.parent / "trainers/tcn/data.py"


def changed_code(before: str, after: str, source: Path = SOURCE) -> list[str]:
    """Lines of `before` that go, lines of `after` that come; empty when the source is not there."""
    if not source.exists():
        return []
    text = source.read_text(encoding="utf-8")
    old, new = (_function(text, name) for name in (before, after))
    found = list(difflib.unified_diff(old, new, lineterm="", n=len(old) + len(new)))
    return [line for line in found[3:] if line.strip()]


def _function(text: str, name: str) -> list[str]:
    """The lines of `Class.function`, without the indentation they share."""
    owner, _, wanted = name.partition(".")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and part.name == wanted:
                    lines = text.splitlines()[part.lineno - 1 : part.end_lineno]
                    return textwrap.dedent("\n".join(lines)).splitlines()
    return []
