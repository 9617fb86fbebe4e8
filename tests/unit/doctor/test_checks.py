"""What all checks have in common: ids, refusals, probes of a Python, a place in the documentation."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from monitor.doctor.check import Check, Context, Result, all_checks, check, run_check
from monitor.doctor.probes import ProbeError, ProbeHung, ask_python
from tests.unit.doctor.prepared import complains


def test_ids_are_promised() -> None:
    """Scripts use them: a change here breaks somebody's."""
    assert [item.id for item in all_checks()] == [
        "python",
        "versions",
        "torch",
        "names",
        "driver",
        "nvml",
        "device-permissions",
        "ring-directory",
        "shm",
        "history",
        "port",
        "socket",
        "daemon",
        "container",
        "processes",
        "psi",
        "clock",
        "calibration",
    ]


def test_an_id_cannot_be_taken_twice() -> None:
    with pytest.raises(ValueError, match="two checks"):
        check("python", "again")(lambda context: Result("PASS", ""))


def test_what_the_machine_refuses_is_a_warning_not_a_crash(context: Context) -> None:
    def refused(context: Context) -> Result:
        raise PermissionError(13, "Permission denied")

    complains(run_check(Check("x", "x", refused), context), "WARN", "could not be checked")


def test_probes_answer_fail_and_give_up() -> None:
    assert ask_python("print('noise'); print('{\"a\": 1}')", 20) == {"a": 1}
    with pytest.raises(ProbeError, match="ZeroDivisionError"):
        ask_python("1/0", 20)
    begin = time.monotonic()
    with pytest.raises(ProbeHung):
        ask_python("import time; time.sleep(120)", 0.2)
    assert time.monotonic() - begin < 120, "it does not wait for the child"


def test_the_documentation_lists_every_check() -> None:
    text = (Path(__file__).parents[3] / "docs/doctor.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|", text, re.M))
    assert {name: title.strip() for name, title in rows.items()} == {
        item.id: item.title for item in all_checks()
    }
