"""docs/reliability.md: each command that tries something writes its findings into its own section."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def today() -> str:
    return datetime.date.today().isoformat()


def _edges(part: str) -> tuple[str, str]:
    return f"<!-- {part} -->", f"<!-- end of {part} -->"


def read(part: str) -> str:
    begin, end = _edges(part)
    return PAGE.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0].strip()


def write(part: str, text: str) -> None:
    """Replace this part of the page."""
    begin, end = _edges(part)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def put_row(part: str, *cells: str) -> None:
    """Put a row with today's date into a part that is a table, replacing the row with the same first cell."""
    rows = read(part).splitlines()
    row = table_row(*cells, today())
    same = [at for at, line in enumerate(rows) if line.startswith(f"| {cells[0]} |")]
    if same:
        rows[same[0]] = row
    else:
        rows.append(row)
    write(part, "\n".join(rows))


def table_row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [table_row(*head), re.sub(r"[^|]+", "---", table_row(*head)), *(table_row(*row) for row in rows)]
    return "\n".join(lines)
