"""History over HTTP: runs live and past, their steps, comparisons and the ledger of predictions.

Questions to the database run in a thread: a long one never holds `/metrics` up.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from monitor.errors import UserError
from monitor.runs.catalog import MAX_ROWS, Catalog, Now
from monitor.runs.listing import shown
from monitor.snapshot import encode
from monitor.store.history import MAX_POINTS, MAX_STEPS, History, RunRecord
from monitor.store.schema import StoreError
from monitor.web.service import Service

Answer = Callable[[Request], Awaitable[Response]]
HOUR = 3600.0


class BadRequest(Exception):
    """A parameter that cannot be used: status and sentence of the answer."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


def _answering(question: Callable[[Request, Service], Any]) -> Answer:
    """Ask in a thread; answer as JSON, with a clear sentence when it cannot be answered."""

    @functools.wraps(question)
    async def answer(request: Request) -> Response:
        try:
            found = await run_in_threadpool(lambda: encode(question(request, request.app.state.service)))
        except BadRequest as error:
            return JSONResponse({"error": str(error)}, error.status)
        except UserError as error:
            return JSONResponse({"error": error.sentence, "hint": error.hint}, 400)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, 503)
        return Response(found, media_type="application/json", headers={"cache-control": "no-store"})

    return answer


def _history(service: Service) -> History:
    if service.store is None:
        raise BadRequest("this daemon keeps no history (store: none)", 404)
    return service.store


def _number(request: Request, name: str, default: float, low: float, high: float) -> float:
    text = request.query_params.get(name)
    if text is None or text == "":
        return default
    try:
        value = float(text)
    except ValueError:
        raise BadRequest(f"{name}: {text!r} is not a number") from None
    if not low <= value <= high:
        raise BadRequest(f"{name}: {text} is not between {low:g} and {high:g}")
    return value


def _whole(request: Request, name: str, default: int, low: int, high: int) -> int:
    return int(_number(request, name, default, low, high))


# ── Questions ────────────────────────────────────────────────────────────────────────────────────


def runs(request: Request, service: Service) -> Any:
    """One row a run, live and past, the newest first."""
    limit = _whole(request, "limit", MAX_ROWS, 1, MAX_ROWS)
    return _catalog(service).rows(limit=limit, state=request.query_params.get("state") or None)


def run(request: Request, service: Service) -> Any:
    """Everything about one run, with its findings."""
    return shown(_record(service, request.path_params["run"]))


def _record(service: Service, wanted: str) -> RunRecord:
    try:
        return _catalog(service).record(wanted)
    except UserError as error:
        raise BadRequest(error.sentence, 404) from None


def _catalog(service: Service) -> Catalog:
    def now() -> Now:
        latest = service.feed.latest
        if latest is None:
            return Now()
        return Now(latest.snapshot.runs, latest.snapshot.findings, latest.snapshot.time)

    return Catalog(now, service.store)


def compare(request: Request, service: Service) -> Any:
    """Run ``a`` against run ``b``; what was realised of a's predictions goes into the ledger."""
    a, b = (request.query_params.get(name, "") for name in ("a", "b"))
    if not a or not b:
        raise BadRequest("compare needs two runs: /api/v1/compare?a=RUN&b=RUN")
    return _catalog(service).compare(_record(service, a).run.id, _record(service, b).run.id)


def steps(request: Request, service: Service) -> Any:
    """Columns of steps after ``after``: ask again with the last step's number to follow a run."""
    rank = _whole(request, "rank", 0, 0, 1_000_000)
    after = _whole(request, "after", 0, 0, 2**53)
    limit = _whole(request, "limit", 10_000, 1, MAX_STEPS)
    return _history(service).steps(request.path_params["run"], rank, after=after, limit=limit)


def history(request: Request, service: Service) -> Any:
    """Readings between ``from`` and ``to`` (wall seconds; default: the last hour)."""
    end = _number(request, "to", time.time(), 0, 1e11)
    start = _number(request, "from", end - HOUR, 0, 1e11)
    if start >= end:
        raise BadRequest("from must be before to")
    points = _whole(request, "points", 500, 1, MAX_POINTS)
    return _history(service).history(start, end, points, subject=request.query_params.get("subject") or None)


def ledger(request: Request, service: Service) -> Any:
    """Predictions and what became of them, and how good each rule was so far."""
    known = _history(service)
    limit = _whole(request, "limit", 1000, 1, 10_000)
    rule, of_run = request.query_params.get("rule"), request.query_params.get("run")
    entries = known.ledger(rule=rule or None, run=of_run or None, limit=limit)
    return {"entries": entries, "rules": known.track_records()}


ROUTES: list[tuple[str, Answer]] = [
    ("/api/v1/runs", _answering(runs)),
    ("/api/v1/runs/{run}", _answering(run)),
    ("/api/v1/runs/{run}/steps", _answering(steps)),
    ("/api/v1/compare", _answering(compare)),
    ("/api/v1/history", _answering(history)),
    ("/api/v1/ledger", _answering(ledger)),
]
