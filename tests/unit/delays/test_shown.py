"""Slopes of a probed run, wherever a run is shown."""

from __future__ import annotations

from monitor.cli.show import render
from monitor.document.markdown import run_markdown
from monitor.document.run_page import run_page
from monitor.model.criticality import Criticality
from monitor.report.report import Report
from monitor.report.text import render as closing
from tests.unit.document import made

PROBED = (
    Criticality("data", 200, 0.3, slope=0.031, error=0.03, margin=0.06),
    Criticality("grad_norm", 80, 0.1, slope=0.94, error=0.2, margin=0.4, more_steps=4_000),
    Criticality("backward", 200, 0.3, slope=1.02, error=0.03, margin=0.06),
    Criticality("optimizer", 16, 0.02, more_steps=900),
)
EXPECTED = [
    ("before the backward pass", "1.02 ± 0.06", "critical"),
    ("in gradient norms", "0.94 ± 0.40", "not clear: about 4,000 more steps would tell"),
    ("behind the wait for a batch", "0.03 ± 0.06", "hidden"),
    ("behind the update", "16 delays", "not known: about 900 more steps would tell"),
]


def check(text: str) -> None:
    """All of it, the most critical place first."""
    at = 0
    for words in EXPECTED:
        for word in words:
            assert text.find(word, at) >= at, (word, text)
            at = text.index(word, at)


def test_wherever_a_run_is_shown() -> None:
    run = made.run(criticality=PROBED)
    check("\n".join(render(made.record(run))))
    check(run_markdown(made.dossier(run)))
    check(run_page(made.dossier(run)))
    check("\n".join(closing(Report(run, (), "Fine."), 100)))


def test_on_80_columns() -> None:
    lines = list(closing(Report(made.run(criticality=PROBED), (), "Fine."), 80))
    assert max(map(len, lines)) <= 80


def test_a_run_that_was_not_probed_says_nothing_of_it() -> None:
    assert "What is critical" not in run_page(made.dossier(made.run()))
    assert "What is critical" not in run_markdown(made.dossier(made.run()))
    assert "ritical" not in "\n".join(closing(Report(made.run(), (), "Fine."), 80))


def test_json_has_every_figure() -> None:
    told = Report(made.run(criticality=PROBED), (), "Fine.").as_json()["criticality"]
    assert [one["place"] for one in told] == [one.place for one in PROBED]
    assert told[0]["margin"] == 0.06
