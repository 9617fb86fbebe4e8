"""`make test` runs failures once more, alone; what fails again, or is no failure of a test, ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import require_program

ROOT = Path(__file__).parents[2]
SHAM = """
printf '%s\\n' "$*" >> {folder}/calls
status=$(head -1 {folder}/statuses)
sed -i 1d {folder}/statuses
exit $status
"""
"""In pytest's place: ends with the status that is next."""


@pytest.mark.parametrize("part", ["together", "timed"])
@pytest.mark.parametrize(
    ("statuses", "passes"),
    [
        ((0,), True),
        ((1, 0), True),  # failed in the crowd, not alone
        ((1, 1), False),
        ((1, 5), False),  # it says something failed, and cannot say what
        ((2,), False),  # interrupted
        ((3,), False),  # pytest itself failed: nobody knows what was not run
    ],
)
def test_what_ends_it(part: str, statuses: tuple[int, ...], passes: bool, tmp_path: Path) -> None:
    (tmp_path / "sham.sh").write_text(SHAM.format(folder=tmp_path))
    (tmp_path / "statuses").write_text("".join(f"{status}\n" for status in statuses))
    sham = f"PYTEST=sh {tmp_path}/sham.sh"
    command = [require_program("make"), "-o", ".venv/.installed", part, sham]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode == 0) == passes, done.stdout + done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == len(statuses) and all("--last-failed" in call for call in calls[1:])


def test_a_failure_that_is_skipped_when_run_again_has_not_passed(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_sessionfinish\n")
    command = [sys.executable, "-m", "pytest", "-q", "--last-failed", "-p", "no:xdist", str(tmp_path)]
    outcomes = []
    for body in ("assert False", "pytest.skip()", "assert True"):
        (tmp_path / "test_it.py").write_text(
            f"import pytest\n\ndef test_one(): {body}\n\ndef test_two(): pass\n"
        )
        outcomes.append(subprocess.run(command, cwd=ROOT, capture_output=True).returncode)
    assert outcomes == [1, 1, 0]
