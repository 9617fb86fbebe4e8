"""Every catalogue: complete, in step with the code, exact, and narrow enough."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Iterator

import pytest

from monitor.language import LANGUAGES, cells, extract
from monitor.language.catalogue import HERE, literals, parts_of, read

SPOKEN = extract.spoken()
OTHERS = [one for one in LANGUAGES if one != "en"]
LEAST_LETTERS = 4


@pytest.fixture(params=OTHERS)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def known(language: str) -> dict[str, str]:
    return read(language)


def test_everything_said_has_a_translation(language: str, known: dict[str, str]) -> None:
    missing = {text: SPOKEN[text] for text in SPOKEN if text not in known}
    assert missing == {}, (
        f"add to monitor/language/{language}/*.json (or, if no person reads it, to unsaid.json beside it):\n"
        + json.dumps(missing, indent=1, ensure_ascii=False)
    )


def test_no_translation_is_stale(known: dict[str, str]) -> None:
    assert [text for text in known if text not in SPOKEN] == [], "nothing says these any more: remove them"


def test_no_exception_is_stale(known: dict[str, str]) -> None:
    unsaid = json.loads((HERE / "unsaid.json").read_text(encoding="utf-8"))
    assert [text for text in unsaid if text in known] == []
    assert [text for text in unsaid if text not in extract.literal()] == []


def test_no_sentence_is_in_two_files(language: str) -> None:
    keys = [
        key
        for file in sorted((HERE / language).glob("*.json"))
        for key in json.loads(file.read_text("utf-8"))
    ]
    assert sorted(keys) == sorted(set(keys))


def omitted(source: str) -> Iterator[int]:
    """Holes a translation may leave out: endings of words, such as a plural's."""
    texts = literals(source)
    yield from (at for at, text in enumerate(texts[:-1]) if re.search(r"[A-Za-z]$", text))


def differing_holes(known: dict[str, str]) -> Iterator[str]:
    for source, target in known.items():
        holes = {part.hole for part in parts_of(target) if part.hole is not None}
        wanted = set(range(len(literals(source)) - 1))
        if not wanted - set(omitted(source)) <= holes <= wanted:
            yield f"{source!r} has holes {sorted(wanted)}, its translation {sorted(holes)}"


def test_holes_agree(known: dict[str, str]) -> None:
    """A hole that is left out on purpose is written `{n:x}`."""
    assert list(differing_holes(known)) == []


def test_kinds_of_holes_are_known(known: dict[str, str]) -> None:
    for source, target in known.items():
        assert {part.kind for part in parts_of(target)} <= {"", "n", "i", "w", "t", "x"}, source
        assert target.strip(), source


def test_short_templates_say_what_fits_into_them(known: dict[str, str]) -> None:
    """ "{} of {}" would match anything: where little is fixed, the holes must be exact."""
    loose = []
    for source, target in known.items():
        fixed = sum(len(re.findall("[A-Za-z]", text)) for text in literals(source))
        kinds = [part.kind for part in parts_of(target) if part.hole is not None]
        if kinds and fixed < LEAST_LETTERS and all(kind == "" for kind in kinds):
            loose.append(source)
    assert loose == []


def columns() -> Iterator[tuple[str, str, int]]:
    """Every column of the screen's tables: where, title, width."""
    from monitor.tui.table import Column

    package = importlib.import_module("monitor.tui.views")
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(value, tuple) and value and isinstance(value[0], Column):
                yield from ((module.name, one.title, one.width) for one in value)


def test_titles_fit_their_columns(known: dict[str, str]) -> None:
    wide = [
        f"{where}: {known[title]} is {cells.width(known[title])} cells, its column {width}"
        for where, title, width in columns()
        if title in known and cells.width(known[title]) > max(width, len(title))
    ]
    assert wide == []
