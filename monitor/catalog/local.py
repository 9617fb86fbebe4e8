"""The runs on this machine without a daemon: every ring read once and judged, plus the history."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

from monitor.catalog.catalog import Catalog, Now
from monitor.model.logs import log_plainly
from monitor.model.settings import Settings
from monitor.pipeline.pipeline import Pipeline
from monitor.store.history import History
from monitor.store.store import Store


@contextlib.contextmanager
def local_catalog(chosen: Settings, *, write: bool = False) -> Iterator[Catalog]:
    """With `write`, the results of a comparison go into the ledger."""
    view = _read_rings(chosen)
    if chosen.store is None:
        yield Catalog(lambda: view, None)
    elif write:
        with contextlib.closing(Store(chosen.store)) as store:
            yield Catalog(lambda: view, store)
    else:
        yield Catalog(lambda: view, History(chosen.store))


def _read_rings(chosen: Settings) -> Now:
    log_plainly()
    pipeline = Pipeline(dataclasses.replace(chosen, source="none", keep_ended=float("inf")))
    with contextlib.closing(pipeline):
        snapshot = pipeline.once()
    return Now(snapshot.runs, snapshot.findings, snapshot.time)
