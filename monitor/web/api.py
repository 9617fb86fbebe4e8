"""History over HTTP: live and past runs, their steps, comparisons, and the ledger of predictions."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, get_args

from msgspec.structs import replace
from starlette.requests import Request

from monitor.catalog.catalog import MAX_ROWS, Catalog, Now
from monitor.catalog.rows import RunRow, shown
from monitor.comparison.compare_runs import Comparison
from monitor.model.errors import UserError
from monitor.model.history import HistoryPage, RunRecord
from monitor.model.run import Run, RunState
from monitor.store.chunks import Steps
from monitor.store.history import MAX_POINTS, MAX_STEPS, History
from monitor.store.ledger import Entry
from monitor.web.endpoint import BadRequest, Endpoint, Parameter, Values
from monitor.web.privacy import Viewer, record_for_viewer
from monitor.web.service import Service

HOUR = 3600.0
LATEST = 1e11
"""Wall-clock seconds: the year 5138."""


def _history(service: Service) -> History:
    if service.store is None:
        raise BadRequest("this daemon keeps no history (store: none)", 404)
    return service.store


def catalog_for(request: Request, service: Service) -> Catalog:
    """All runs, as this client may see them."""
    viewer = service.viewer(request)

    def now() -> Now:
        latest = service.feed.latest
        if latest is None:
            return Now()
        return Now(latest.snapshot.runs, latest.snapshot.findings, latest.snapshot.time)

    return Catalog(now, service.store, partial(record_for_viewer, viewer=viewer))


def _record(catalog: Catalog, wanted: str) -> RunRecord:
    try:
        return catalog.record(wanted)
    except UserError as error:
        raise BadRequest(error.sentence, 404) from None


# ── Questions ────────────────────────────────────────────────────────────────────────────────────


def runs(request: Request, service: Service, values: Values) -> Any:
    """One row per run, live and past, newest first."""
    return catalog_for(request, service).rows(limit=values["limit"], state=values["state"])


def run(request: Request, service: Service, values: Values) -> Any:
    """Everything about one run, with its findings."""
    return shown(_record(catalog_for(request, service), request.path_params["run"]))


def compare(request: Request, service: Service, values: Values) -> Any:
    """Run ``a`` against run ``b``. With POST, the realised gains of a's predictions go into the ledger, if
    both runs belong to whoever asks."""
    catalog, viewer = catalog_for(request, service), service.viewer(request)
    before, after = (_record(catalog, values[name]).run for name in ("a", "b"))

    def may_note(run: Run) -> bool:
        return request.method == "POST" and viewer.owns(run.owner_uid)

    return catalog.compare(before.id, after.id, may_note=may_note)


def steps(request: Request, service: Service, values: Values) -> Any:
    """Columns of the steps after ``after``: to follow a run, ask again with the last step's number."""
    wanted = request.path_params["run"]
    return _history(service).steps(wanted, values["rank"], after=values["after"], limit=values["limit"])


def history(request: Request, service: Service, values: Values) -> Any:
    """Readings between ``from`` and ``to`` (wall-clock seconds; default: the last hour)."""
    end = time.time() if values["to"] is None else values["to"]
    start = end - HOUR if values["from"] is None else values["from"]
    if start >= end:
        raise BadRequest("from must be before to")
    return _history(service).history(start, end, values["points"], subject=values["subject"])


def ledger(request: Request, service: Service, values: Values) -> Any:
    """Predictions and how they turned out, and how good each rule has been so far."""
    known, viewer = _history(service), service.viewer(request)
    entries = known.ledger(rule=values["rule"], run=values["run"], limit=values["limit"])
    return {"entries": [_entry(one, viewer) for one in entries], "rules": known.track_records()}


def _entry(entry: Entry, viewer: Viewer) -> Entry:
    """The script's path and what was changed in it are only for its owner."""
    if viewer.owns(entry.owner_uid):
        return entry
    script = entry.script.rpartition("/")[2] if entry.script else None
    return replace(entry, script=script, changed=None)


ENDPOINTS = (
    Endpoint(
        "/api/v1/runs",
        runs,
        list[RunRow],
        (
            Parameter("limit", "maximum number of rows", "integer", MAX_ROWS, 1, MAX_ROWS),
            Parameter("state", "only runs in this state", choices=get_args(RunState)),
        ),
    ),
    Endpoint("/api/v1/runs/{run}", run, dict[str, Any], errors=(404,)),
    Endpoint(
        "/api/v1/runs/{run}/steps",
        steps,
        Steps,
        (
            Parameter("rank", "rank whose steps to return", "integer", 0, 0, 1_000_000),
            Parameter("after", "only steps with a larger number", "integer", 0, 0, 2**53),
            Parameter("limit", "maximum number of steps", "integer", 10_000, 1, MAX_STEPS),
        ),
        errors=(404,),
    ),
    Endpoint(
        "/api/v1/compare",
        compare,
        Comparison,
        (
            Parameter("a", "the run before", required=True),
            Parameter("b", "the run after", required=True),
        ),
        methods=("GET", "POST"),
        errors=(404,),
    ),
    Endpoint(
        "/api/v1/history",
        history,
        HistoryPage,
        (
            Parameter("from", "wall seconds; default: an hour before the end", "number", None, 0, LATEST),
            Parameter("to", "wall seconds; default: now", "number", None, 0, LATEST),
            Parameter("points", "maximum number of intervals", "integer", 500, 1, MAX_POINTS),
            Parameter("subject", "only gpu:UUID, host or run:ID"),
        ),
        errors=(404,),
    ),
    Endpoint(
        "/api/v1/ledger",
        ledger,
        dict[str, Any],
        (
            Parameter("rule", "only this rule's"),
            Parameter("run", "only this run's"),
            Parameter("limit", "maximum number of predictions", "integer", 1000, 1, 10_000),
        ),
        errors=(404,),
    ),
)
