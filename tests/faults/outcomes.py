"""The outcome of a test run, and the parts of docs/reliability.md generated from it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import page
from tests.faults.attacks import ATTACKS, FAULTS, Tried

FIGURES = ("written", "read", "lost", "doubled")
"""Steps, as a test reports them (`record_property`): `lost` counts the lost ones, read + lost = written."""


@dataclass
class Case:
    """One test as it was run."""

    test: str
    """``file::function``, without its parameters."""
    outcome: str
    figures: dict[str, int] = field(default_factory=dict)


def cases(report: Path) -> list[Case]:
    """From pytest's JUnit file."""
    return [_case(one) for one in ElementTree.parse(report).getroot().iter("testcase")]


def _case(one: ElementTree.Element) -> Case:
    name = (one.get("name") or "").partition("[")[0]
    test = f"{(one.get('classname') or '').replace('.', '/')}.py::{name}"
    bad = [kind for kind in ("failure", "error", "skipped") if one.find(kind) is not None]
    told = {str(value.get("name")): int(value.get("value") or 0) for value in one.iter("property")}
    return Case(test, bad[0] if bad else "passed", told)


def named_tests(lists: Sequence[Sequence[Tried]] = (FAULTS, ATTACKS)) -> list[str]:
    """All named tests, each once; a whole file instead of single tests in it."""
    named = dict.fromkeys(test for tried in lists for one in tried for test in one.tests)
    return [test for test in named if "::" not in test or test.partition("::")[0] not in named]


def _own(one: Tried, found: Sequence[Case]) -> list[Case]:
    return [case for case in found if case.test in one.tests or case.test.partition("::")[0] in one.tests]


def _held(own: Sequence[Case]) -> str:
    passed = sum(case.outcome == "passed" for case in own)
    return f"{passed}" if passed == len(own) else f"**{passed}**"


def _tried(own: Sequence[Case]) -> int:
    """A test may try something many times."""
    return sum(case.figures.get("tried", 1) for case in own)


def _survived(own: Sequence[Case]) -> str:
    survived = sum(case.figures.get("tried", 1) for case in own if case.outcome == "passed")
    return f"{survived}" if survived == _tried(own) else f"**{survived}**"


def _figure(own: Sequence[Case], name: str) -> str:
    told = [case.figures[name] for case in own if name in case.figures]
    return f"{sum(told):,}" if told else "–"


def faults(found: Sequence[Case]) -> str:
    head = ("fault", "tried", "survived", *(f"steps {name}" for name in FIGURES))
    rows = []
    for one in FAULTS:
        own = _own(one, found)
        rows.append((one.what, f"{_tried(own)}", _survived(own), *(_figure(own, name) for name in FIGURES)))
    return f"Tried on {page.today()}.\n\n{page.table(head, rows)}"


def attacks(found: Sequence[Case]) -> str:
    head = ("what was found", "tests tried", "held", "by")
    rows = []
    for one in ATTACKS:
        own = _own(one, found)
        names = ", ".join(f"`{test}`" for test in one.tests)
        rows.append((one.what, f"{len(own)}", _held(own), names))
    return f"Tried on {page.today()}.\n\n{page.table(head, rows)}"
