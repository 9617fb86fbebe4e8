"""docs/reliability.md is what commands wrote: its rows match the lists, and every test exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.faults import page
from tests.faults.attacks import ATTACKS, FAULTS
from tests.faults.outcomes import Case, attacks, cases, faults, named_tests
from tests.faults.people import ROOT


@pytest.mark.parametrize("test", named_tests())
def test_every_test_that_is_named_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
    known = {one.name for one in body if isinstance(one, ast.FunctionDef)}
    assert not name or name in known


def test_the_page_has_the_rows_of_the_lists() -> None:
    for part, tried in (("faults", FAULTS), ("attacks", ATTACKS)):
        rows = [
            line.split(" | ")[0].removeprefix("| ") for line in page.read(part).splitlines() if "| " in line
        ]
        assert rows[1:] == [one.what for one in tried], f"make faults writes the part {part}"


def test_what_failed_stands_out(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.faults.test_kills" name="test_a[1]"><properties>'
        '<property name="tried" value="200"/><property name="written" value="7000"/></properties></testcase>'
        '<testcase classname="tests.faults.test_rules" name="test_b"><failure/></testcase>'
        "</testsuite></testsuites>"
    )
    found = cases(report)
    assert found[0] == Case("tests/faults/test_kills.py::test_a", "passed", {"tried": 200, "written": 7000})
    assert f"| {FAULTS[0].what} | 200 | 200 | 7,000 | – | – | – |" in faults(found)
    assert "hides all findings | 1 | **0** | `tests/faults/test_rules.py` |" in attacks(found)


def test_a_row_is_replaced_by_its_first_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    page.PAGE.write_text("a\n<!-- fuzz -->\n| what | n | on |\n|---|---|---|\n<!-- end of fuzz -->\nb\n")
    for count in ("1", "2"):
        page.put_row("fuzz", "rings", count)
    page.put_row("fuzz", "files", "3")
    rows = page.read("fuzz").splitlines()[2:]
    assert rows == [f"| rings | 2 | {page.today()} |", f"| files | 3 | {page.today()} |"]
    assert page.PAGE.read_text().startswith("a\n") and page.PAGE.read_text().endswith("\nb\n")
