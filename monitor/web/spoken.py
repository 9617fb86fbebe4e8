"""The language of a page: which one a request asks for, and what a script needs to speak it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from starlette.requests import Request

from monitor.language import matching, speaking, word

NOTHING: dict[str, Any] = {"words": {}, "templates": []}
"""English."""


def language_of(request: Request) -> str:
    """`?lang=`, else what the browser prefers."""
    asked = request.query_params.get("lang") or request.headers.get("accept-language", "")
    return matching(asked.partition(",")[0])


@cache
def catalogue_for(language: str, scripts: tuple[str, ...]) -> str:
    """The part of a catalogue these scripts speak, as JSON inside HTML."""
    told = _part(language, scripts) if language != "en" else NOTHING
    return json.dumps(told, ensure_ascii=False).replace("</", "<\\/")


def _part(language: str, scripts: Iterable[str]) -> dict[str, Any]:
    from monitor.language.catalogue import catalogue
    from monitor.language.extract import of_script
    from monitor.language.standing import STANDING

    keys = {*STANDING, *(text for script in scripts for text in of_script(script))}
    return catalogue(language).part(keys)


def page_in(language: str, html: str) -> str:
    """What stands between a page's tags, and its placeholder, in this language."""
    with speaking(language):
        html = re.sub(r"(?<=>)[^<>/]*[A-Za-z][^<>/]*(?=<)", lambda found: _kept(found.group()), html)
        html = re.sub(r'(?<=placeholder=")[^"]+', lambda found: word(found.group()), html)
    return html.replace('lang="en"', f'lang="{language}"')


def _kept(text: str) -> str:
    """With the blanks around it."""
    return text.replace(text.strip(), word(text.strip()))
