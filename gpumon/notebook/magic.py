"""The cell magic. A cell that begins with ``%%gpumon`` runs as it would without that line: we only remove the
line before the cell runs, and are told when the run begins and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cell import WatchedCell

MAGIC = "%%gpumon"
USAGE = "%%gpumon [NAME] as the first line of a cell: gpumon watches what it trains and reports below it."


def register(shell: Any) -> None:
    """Once per shell, however often the extension is loaded."""
    if getattr(shell, "_gpumon_cells", None) is not None:
        return
    cells = shell._gpumon_cells = Cells(shell)
    shell.input_transformers_cleanup.append(without_magic)
    shell.events.register("pre_run_cell", cells.begin)
    shell.events.register("post_run_cell", cells.end)
    shell.register_magic_function(cells.magic, "line_cell", "gpumon")


def without_magic(lines: list[str]) -> list[str]:
    """Blank the line to keep line numbers in tracebacks; remove it before another magic, which must be
    first."""
    if not lines or name_in(lines[0]) is None:
        return lines
    rest = lines[1:]
    return rest if rest and rest[0].startswith("%%") else ["\n", *rest]


def name_in(first_line: str) -> str | None:
    """What follows ``%%gpumon``; None if the cell is not for us."""
    word, _, name = first_line.strip().partition(" ")
    return name.strip() if word == MAGIC else None


class Cells:
    """The cells of one shell, one at a time."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._watched: WatchedCell | None = None

    def magic(self, line: str, cell: str | None = None) -> None:
        """``%%gpumon [NAME]``: watch what this cell trains, report below it."""
        if cell is None:
            print(USAGE)
        else:  # not the first line of the cell: another magic precedes it
            self._shell.run_cell(f"{MAGIC} {line}\n{cell}")

    def begin(self, info: Any) -> None:
        name = name_in(str(info.raw_cell).lstrip("\n").partition("\n")[0])
        if name is not None:
            self._guarded(lambda: self._begin(name))

    def _begin(self, name: str) -> None:
        self._watched = WatchedCell(
            name or notebook_name(self._shell.user_ns), hasattr(self._shell, "kernel")
        )

    def end(self, result: Any) -> None:
        watched, self._watched = self._watched, None
        if watched is not None:
            cause = result and (result.error_in_exec or result.error_before_exec)
            self._guarded(lambda: watched.end(cause))

    def _guarded(self, what: Callable[[], None]) -> None:
        """No failure here may affect the user's cell."""
        try:
            what()
        except KeyboardInterrupt:
            print("gpumon: no report: interrupted", file=sys.stderr)
        except Exception as error:  # noqa: BLE001 — see above
            print(f"gpumon: cannot watch this cell: {type(error).__name__}: {error}", file=sys.stderr)


def notebook_name(names: dict[str, Any]) -> str:
    """The name according to Jupyter's server or VS Code; a kernel does not know its notebook."""
    path = os.environ.get("JPY_SESSION_NAME") or names.get("__vsc_ipynb_file__")
    return Path(str(path)).stem if path else "notebook"
