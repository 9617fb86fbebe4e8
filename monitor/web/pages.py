"""Pages about runs: a list, the report of one (live while it lasts), and two side by side.

They are the documents `gpumon report` writes, without what the viewer may not see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from monitor.catalog.close_up import close_up, span
from monitor.catalog.dossier import gather
from monitor.document.compare_page import compare_page
from monitor.document.list_page import list_page, not_found_page
from monitor.document.markup import Markup
from monitor.document.parts import navigation, style
from monitor.document.run_page import run_page
from monitor.language import speaking
from monitor.model.errors import UserError
from monitor.store.schema import StoreError
from monitor.web.api import catalog_for
from monitor.web.inlined import source_hash
from monitor.web.live_page import read
from monitor.web.service import Service
from monitor.web.spoken import language_of

LISTED = 200
Make = Callable[[Request, Service], str]


def page(make: Make) -> Callable[[Request], Awaitable[Response]]:
    """A handler that answers with a page, made in a thread."""

    async def answer(request: Request) -> Response:
        try:
            text, status = await run_in_threadpool(_spoken, make, request), 200
        except (UserError, StoreError) as error:
            with speaking(language_of(request)):
                text, status = not_found_page(str(error), _ways()), 404
        sources = f"style-src {source_hash(style())}; script-src {' '.join(map(source_hash, scripts()))}"
        policy = f"default-src 'none'; connect-src 'self'; {sources}; base-uri 'none'; frame-ancestors 'none'"
        headers = {"content-security-policy": policy, "cache-control": "no-store"}
        return Response(text, status, media_type="text/html", headers=headers)

    return answer


def _spoken(make: Make, request: Request) -> str:
    with speaking(language_of(request)):
        return make(request, request.app.state.service)


@cache
def scripts() -> tuple[str, ...]:
    """What makes a document a page: values where one points, close-ups, a live run kept up to date."""
    return read("patch.js"), read("cursor.js"), read("anew.js")


def _ways() -> Markup:
    return navigation((("now", "/"), ("runs", "/runs")))


def runs(request: Request, service: Service) -> str:
    return list_page(catalog_for(request, service).rows(limit=LISTED), _ways())


def run(request: Request, service: Service) -> str:
    catalog = catalog_for(request, service)
    dossier = gather(catalog, request.path_params["run"])
    if {"from", "to"} & set(request.query_params):
        dossier = close_up(catalog, dossier, *span(*map(request.query_params.get, ("from", "to"))))
    return run_page(dossier, _ways(), scripts())


def compare(request: Request, service: Service) -> str:
    catalog = catalog_for(request, service)
    a, b = (request.query_params.get(name) or "" for name in ("a", "b"))
    found = catalog.compare(a, b, may_note=lambda run: False)
    return compare_page(found, gather(catalog, found.a.run), gather(catalog, found.b.run), _ways(), scripts())


PAGES = (("/runs", runs), ("/runs/{run}", run), ("/compare", compare))
