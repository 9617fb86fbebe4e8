"""History over HTTP: runs live and past, their steps, comparisons and the ledger of predictions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

ROUTES: list[tuple[str, Callable[[Request], Awaitable[Response]]]] = []
