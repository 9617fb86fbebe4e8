"""The generated pages match the code."""

from __future__ import annotations

from pathlib import Path

from monitor.model import settings
from monitor.web import contract

DOCS = Path(__file__).parents[3] / "docs"


def test_the_metrics_page_is_fresh() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == contract.page(), (
        "stale: python -m monitor.web.contract > docs/metrics.md"
    )


def test_the_options_table_is_fresh() -> None:
    assert settings.table() in (DOCS / "daemon.md").read_text(encoding="utf-8"), (
        "stale: put the output of python -m monitor.model.settings into docs/daemon.md"
    )
