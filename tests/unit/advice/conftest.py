"""A failing rule is a failed test here."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from monitor.advice.guard import Guard, T


@pytest.fixture(autouse=True)
def failing_rules_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(self: Guard, what: str, question: Callable[[], T], otherwise: T) -> T:
        return question()

    monkeypatch.setattr(Guard, "ask", ask)
