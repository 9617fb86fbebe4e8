"""Where `runs`, `show` and `compare` get their runs: a daemon if one answers, otherwise rings and history."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from monitor.catalog.local import local_catalog
from monitor.catalog.rows import RunRow, find, from_shown
from monitor.client import Client
from monitor.comparison.compare_runs import Comparison
from monitor.language import said
from monitor.model import settings
from monitor.model.errors import EXIT_UNREACHABLE, UserError
from monitor.model.history import HistoryPage, RunRecord
from monitor.store.chunks import Steps
from monitor.store.history import MAX_STEPS
from monitor.store.ledger import Entry

OWN_OPTIONS = ("dir", "store", "policy")
Answer = TypeVar("Answer")


class RunSource(Protocol):
    """What the commands ask of a daemon or of the files."""

    def rows(self, *, limit: int, state: str | None = None) -> list[RunRow]: ...
    def record(self, wanted: str) -> RunRecord: ...
    def compare(self, a: str, b: str) -> Comparison: ...
    def readings(self, start: float, end: float, points: int) -> HistoryPage | None: ...
    def ledger(self) -> list[Entry]: ...
    def steps(self, run: str, *, rank: int = 0, after: int = 0, limit: int = MAX_STEPS) -> Steps: ...


def configure(parser: argparse.ArgumentParser, *, json: bool = True) -> None:
    if json:
        parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--connect", metavar="URL", help="the daemon to ask: http://HOST:PORT or unix:/path")
    settings.add_options(parser, OWN_OPTIONS)


@contextlib.contextmanager
def open_runs(args: argparse.Namespace, *, write: bool = False) -> Iterator[RunSource]:
    """A daemon that was named must answer; otherwise one is asked if it is there."""
    with contextlib.ExitStack() as stack:
        daemon = _daemon(args, stack)
        if daemon is not None:
            yield daemon
            return
        chosen = settings.load(args)
        named = chosen.store if getattr(args, "option_store", None) is not None else None
        missing = f"there is no history {named}" if named is not None and not named.exists() else None
        catalog = stack.enter_context(local_catalog(chosen, write=write))
        try:
            yield catalog
        finally:
            if trouble := catalog.trouble or missing:
                print(said(f"gpumon: {trouble}; only runs in shared memory are known"), file=sys.stderr)


def _daemon(args: argparse.Namespace, stack: contextlib.ExitStack) -> RunSource | None:
    own = any(getattr(args, f"option_{name}", None) is not None for name in OWN_OPTIONS)
    if own and not args.connect:
        return None
    client = stack.enter_context(Client(args.connect))
    try:
        return DaemonRuns(client)
    except UserError as error:
        if args.connect or error.code != EXIT_UNREACHABLE:
            raise
    return None


class DaemonRuns:
    """The runs a daemon knows, through its API."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._rows = msgspec.convert(client.get_json("/api/v1/runs"), list[RunRow])

    def rows(self, *, limit: int, state: str | None = None) -> list[RunRow]:
        return [one for one in self._rows if state is None or one.state == state][:limit]

    def record(self, wanted: str) -> RunRecord:
        run = find(self._rows, wanted).run
        return from_shown(self._client.get_json(f"/api/v1/runs/{quote(run, safe='')}"))

    def compare(self, a: str, b: str) -> Comparison:
        question = urlencode({"a": find(self._rows, a).run, "b": find(self._rows, b).run})
        return msgspec.convert(self._client.post_json(f"/api/v1/compare?{question}"), Comparison)

    def readings(self, start: float, end: float, points: int) -> HistoryPage | None:
        question = urlencode({"from": start, "to": end, "points": points})
        return self._history(f"/api/v1/history?{question}", HistoryPage)

    def ledger(self) -> list[Entry]:
        answer = self._history("/api/v1/ledger", dict[str, Any]) or {}
        return msgspec.convert(answer.get("entries", []), list[Entry])

    def steps(self, run: str, *, rank: int = 0, after: int = 0, limit: int = MAX_STEPS) -> Steps:
        question = urlencode({"rank": rank, "after": after, "limit": limit})
        return self._history(f"/api/v1/runs/{quote(run, safe='')}/steps?{question}", Steps) or Steps()

    def _history(self, path: str, kind: type[Answer]) -> Answer | None:
        """A daemon may keep no history; then there is none to show."""
        try:
            return msgspec.convert(self._client.get_json(path), kind)
        except UserError as error:
            if error.code == EXIT_UNREACHABLE:
                raise
            return None
