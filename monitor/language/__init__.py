"""What people read, in their language. Sentences are written once, in English, where the facts are known;
this room translates them where they leave for a person. Machine formats never pass through it.

In English, which is the default, nothing is loaded and every function returns its text as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monitor.language.catalogue import Catalogue

VARIABLE = "GPUMON_LANG"
LANGUAGES = ("en", "zh")
_everywhere: Catalogue | None = None
_here: ContextVar[Catalogue | None] = ContextVar("gpumon_language")


def chosen(environment: Mapping[str, str] = os.environ) -> str:
    """`GPUMON_LANG`, else the locale, as far as there is a catalogue for it; else English."""
    names = (VARIABLE, "LC_ALL", "LC_MESSAGES", "LANG")
    return matching(next((environment[name] for name in names if environment.get(name)), ""))


def matching(name: str) -> str:
    """The language for a locale or tag: "zh_CN.UTF-8" and "zh-Hans" are "zh"."""
    bare = name.lower()[:2]
    return bare if bare in LANGUAGES and not name[2:3].isalpha() else "en"


def use(language: str) -> None:
    """The language of this process."""
    global _everywhere
    _everywhere = _of(language)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Another language for what is made here, as for one request of many."""
    token = _here.set(_of(language))
    try:
        yield
    finally:
        _here.reset(token)


def _of(language: str) -> Catalogue | None:
    if language == "en":
        return None
    from monitor.language.catalogue import catalogue

    return catalogue(language)


def name() -> str:
    """The language that is spoken here, as HTML names it."""
    spoken = current()
    return "en" if spoken is None else spoken.language


def current() -> Catalogue | None:
    return _here.get(_everywhere)


def said(text: str) -> str:
    """Sentences. A single word stays: it may be somebody's name for something."""
    spoken = current()
    return text if spoken is None else spoken.sentences(text)


def word(text: str) -> str:
    """A label, a heading or a state, which the caller knows to be ours."""
    spoken = current()
    return text if spoken is None else spoken.text(text)
