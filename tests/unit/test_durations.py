"""The list of the slowest tests comes from the reports of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import durations

REPORT = """<testsuites><testsuite>
<testcase file="tests/a.py" name="test_one" time="0.7"/>
<testcase file="tests/a.py" name="test_two" time="3.0"/>
<testcase file="tests/b.py" name="test_three" time="0.2"/>
<testcase file="tests/c.py" name="test_four" time="9"/>
</testsuite></testsuites>"""


def test_files_are_ordered_by_what_all_their_tests_take(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    found = durations.tests(tmp_path / "report.xml")
    assert list(durations.by_file(found).items()) == [("tests/c.py", 9), ("tests/a.py", 4)]


def test_the_list_replaces_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "REPORTS", tmp_path)
    monkeypatch.setattr(durations, "RECORD", tmp_path / "durations.json")
    monkeypatch.setattr(durations, "PAGE", tmp_path / "testing.md")
    durations.PAGE.write_text(f"# Testing\n\n{durations.MARK}old")
    assert durations.main() == 1, "without a report nothing is written"
    assert durations.PAGE.read_text().endswith("old")
    (tmp_path / "report.xml").write_text(REPORT)
    assert durations.main() == 0
    page = durations.PAGE.read_text()
    assert page.startswith("# Testing\n") and "old" not in page and "4 tests, 0.2 minutes" in page
    assert page.index("test_four") < page.index("test_two") < page.index("test_one")
    assert durations.recorded() == {"tests/c.py": 9, "tests/a.py": 4}
