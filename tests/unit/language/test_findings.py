"""Every rule's finding in Chinese, as a person reads it: no English prose is left, and no figure is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from monitor import language
from monitor.language import told
from monitor.model.finding import Finding
from tests.unit.advice.test_rules import CASES, findings_of

CODE = re.compile(r"`[^`]*`")
PROSE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}")
FIGURE = re.compile(r"\d[\d.,]*\d|\d")


def texts(finding: Finding) -> Iterator[str]:
    remedy = finding.remedy
    yield from (finding.title, finding.headline, finding.cause, finding.why)
    yield from (remedy.summary, remedy.price, remedy.avoid)
    yield finding.speedup.why if finding.speedup else ""


@pytest.mark.parametrize("rule", sorted(CASES))
def test_a_finding_is_chinese_with_the_same_figures(rule: str) -> None:
    for finding in findings_of(CASES[rule][0], rule):
        with language.speaking("zh"):
            chinese = told.finding(finding)
        for english, shown in zip(texts(finding), texts(chinese), strict=True):
            assert not PROSE.search(CODE.sub("", shown)), f"{english!r} is said as {shown!r}"
            assert set(CODE.findall(english)) == set(CODE.findall(shown)), f"{english!r}: {shown!r}"
        assert set(FIGURE.findall(finding.headline)) <= set(FIGURE.findall(chinese.headline))
        assert chinese.remedy.change == finding.remedy.change
        assert (chinese.id, chinese.evidence, chinese.severity) == (
            finding.id, finding.evidence, finding.severity,
        )  # fmt: skip


def test_a_remedy_of_two_sentences_is_chinese_to_its_end() -> None:
    """The second fills the end of the first one's template, and its stop was that of the whole."""
    first = "Give the DataLoader 1 worker (num_workers=1; 2 cores here), so that the next batches are made "
    second = "And do the work of the line at t.py:24 for the whole batch at once, with tensor operations."
    with language.speaking("zh"):
        shown = language.said(f"{first}while the model computes. {second}")
    assert not PROSE.search(shown) and "t.py:24" in shown
