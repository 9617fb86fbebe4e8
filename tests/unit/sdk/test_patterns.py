"""Patterns compiled at their first use."""

from __future__ import annotations

import re

import pytest

from sdk.patterns import later


def test_a_pattern_searches_as_a_compiled_one() -> None:
    text, flags = r"(?P<word>[a-z]+)-(\d+)", re.IGNORECASE
    compiled, pattern = re.compile(text, flags), later(text, flags)
    for given in ("Loss-12 acc-7", "nothing here"):
        assert pattern.findall(given) == compiled.findall(given)
        assert pattern.sub("x", given) == compiled.sub("x", given)
        assert bool(pattern.fullmatch(given)) == bool(compiled.fullmatch(given))
    assert pattern.groupindex == compiled.groupindex


def test_it_is_compiled_at_the_first_use_only(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = re.compile

    def compile_noting(text: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(text)
        return real(text, flags)

    monkeypatch.setattr(re, "compile", compile_noting)
    pattern = later("a+")
    assert compiled == []
    assert pattern.match("aa") and pattern.match("a") and not pattern.match("b")
    assert compiled == ["a+"]
