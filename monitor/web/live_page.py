"""The live page at ``/``: one file, no external assets, updated by the event stream."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from monitor.document.parts import cursor_style
from monitor.web.inlined import source_hash
from monitor.web.spoken import catalogue_for, language_of, page_in

HERE = Path(__file__).parent / "page"


PLACES = ("/*LANGUAGE*/", "/*UNITS*/", "/*PATCH*/", "/*CURSOR*/", "/*SCRIPT*/")


@cache
def _page(language: str) -> tuple[bytes, str]:
    """The page with its style and scripts inlined, and the policy that allows only these."""
    html, style, *scripts = map(
        read, ("page.html", "page.css", "language.js", "units.js", "patch.js", "cursor.js", "page.js")
    )
    style += cursor_style()
    html = page_in(language, html).replace("/*STYLE*/", style)
    html = html.replace("/*CATALOGUE*/", catalogue_for(language, (scripts[-1],)))
    for place, script in zip(PLACES, scripts, strict=True):
        html = html.replace(place, script)
    allowed = " ".join(map(source_hash, scripts))
    policy = f"default-src 'none'; connect-src 'self'; style-src {source_hash(style)}; script-src {allowed}"
    return html.encode(), f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


async def live_page(request: Request) -> Response:
    body, policy = _page(language_of(request))
    headers = {"content-security-policy": policy, "cache-control": "no-cache", "vary": "Accept-Language"}
    return Response(body, media_type="text/html", headers=headers)
