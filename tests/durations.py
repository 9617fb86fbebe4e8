"""How long the tests take: ``python -m tests.durations``, after a `make test`.

Reads the reports it left in out/tests and writes tests/durations.json, by which the next run starts the
longest files first, and the list of the slowest tests in docs/testing.md.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "out" / "tests"
RECORD = ROOT / "tests" / "durations.json"
PAGE = ROOT / "docs" / "testing.md"
MARK = "<!-- written by python -m tests.durations -->\n"
SLOWEST = 20
LEAST = 1.0
"""Seconds; shorter files are not worth a line."""


class Test(NamedTuple):
    file: str
    name: str
    seconds: float
    """Set-up and tear-down included: whichever test of a file comes first pays for what they share."""


def tests(report: Path) -> list[Test]:
    cases = ElementTree.parse(report).iter("testcase")
    return [Test(case.attrib["file"], case.attrib["name"], float(case.attrib["time"])) for case in cases]


def by_file(found: list[Test]) -> dict[str, int]:
    """File → whole seconds, longest first."""
    total: Counter[str] = Counter()
    for one in found:
        total[one.file] += one.seconds  # type: ignore[assignment]
    return {file: round(seconds) for file, seconds in total.most_common() if seconds >= LEAST}


def listed(found: list[Test]) -> str:
    """The slowest as a table, and what all take together."""
    slowest = sorted(found, key=lambda one: -one.seconds)[:SLOWEST]
    rows = [f"| {one.seconds:.1f} | `{one.name}` | `{one.file}` |" for one in slowest]
    minutes = sum(one.seconds for one in found) / 60
    total = f"{len(found)} tests, {minutes:.1f} minutes one after the other.\n"
    return "\n".join([total, "| seconds | test | file |", "|---|---|---|", *rows]) + "\n"


def recorded() -> dict[str, int]:
    """File → seconds, as last written."""
    found: dict[str, int] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def main() -> int:
    found = [one for report in sorted(REPORTS.glob("*.xml")) for one in tests(report)]
    if not found:
        print(f"no reports in {REPORTS}: run `make test` first", file=sys.stderr)
        return 1
    RECORD.write_text(json.dumps(by_file(found), indent=1) + "\n", encoding="utf-8")
    prose = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(prose + MARK + "\n" + listed(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
