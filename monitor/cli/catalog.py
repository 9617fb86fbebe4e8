"""Where `runs`, `show` and `compare` get their runs: a daemon when one answers, else rings and history."""

from __future__ import annotations

import argparse
from typing import Any, Protocol
from urllib.parse import quote, urlencode

import msgspec

from monitor import settings
from monitor.advice.engine import Engine
from monitor.advice.policy import DEFAULT_POLICY, load_policy
from monitor.client import Client
from monitor.clock import Moment
from monitor.compare import Comparison
from monitor.errors import EXIT_UNREACHABLE, UserError
from monitor.host.reader import HostReader
from monitor.runs.catalog import Catalog, Now
from monitor.runs.listing import RunRow, find, from_shown
from monitor.runs.reader import RunReader
from monitor.settings import Settings
from monitor.snapshot import Finding, Run, Snapshot, Source
from monitor.store.history import History, RunRecord
from monitor.store.store import Store

OWN_OPTIONS = ("dir", "store", "policy")


class Runs(Protocol):
    """What the commands ask, of a daemon or of the files."""

    def rows(self, *, limit: int, state: str | None = None) -> list[RunRow]: ...
    def record(self, wanted: str) -> RunRecord: ...
    def compare(self, a: str, b: str) -> Comparison: ...


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--connect", metavar="URL", help="the daemon to ask: http://HOST:PORT or unix:/path")
    settings.add_options(parser, OWN_OPTIONS)


def open_catalog(args: argparse.Namespace, *, write: bool = False) -> Runs:
    """A daemon that was named must answer; one that was not is asked when it is there."""
    own = [name for name in OWN_OPTIONS if getattr(args, f"option_{name}", None) is not None]
    if args.connect or not own:
        client = Client(args.connect)
        try:
            return DaemonCatalog(client)
        except UserError as error:
            if args.connect or error.code != EXIT_UNREACHABLE:
                raise
    return local_catalog(settings.load(args), write=write)


class DaemonCatalog:
    """The daemon's API."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._rows = msgspec.convert(client.get_json("/api/v1/runs"), list[RunRow])

    def rows(self, *, limit: int, state: str | None = None) -> list[RunRow]:
        return [one for one in self._rows if state is None or one.state == state][:limit]

    def record(self, wanted: str) -> RunRecord:
        run = find(self._rows, wanted).run
        return from_shown(self._ask(f"/api/v1/runs/{quote(run, safe='')}"))

    def compare(self, a: str, b: str) -> Comparison:
        question = urlencode({"a": find(self._rows, a).run, "b": find(self._rows, b).run})
        return msgspec.convert(self._ask(f"/api/v1/compare?{question}"), Comparison)

    def _ask(self, path: str) -> Any:
        return self.client.get_json(path)


def local_catalog(chosen: Settings, *, write: bool = False) -> Catalog:
    """Read every ring once, and judge it; history beside it when there is one."""
    now = Moment.now()
    reader = RunReader(chosen.dir, keep_ended=float("inf"))
    try:
        reader.poll(now)
        runs = reader.runs(now, (), ())
    finally:
        reader.close()
    view = Now(runs, _judge(chosen, runs, now), now.wall)
    history: History | None = None
    if chosen.store is not None:
        history = Store(chosen.store) if write else History(chosen.store)
    return Catalog(lambda: view, history)


def _judge(chosen: Settings, runs: tuple[Run, ...], now: Moment) -> tuple[Finding, ...]:
    """Findings of one look: asked as often as a finding needs to be confirmed."""
    if not runs:
        return ()
    policy = load_policy(chosen.policy) if chosen.policy else DEFAULT_POLICY
    engine = Engine(policy)
    snapshot = Snapshot(
        seq=1,
        time=now.wall,
        monotonic=now.monotonic,
        interval_seconds=chosen.interval,
        source=Source("none"),
        host=HostReader().read(now),
        runs=runs,
    )
    found: tuple[Finding, ...] = ()
    for _ in range(max(1, policy.confirm_ticks)):
        found = engine.evaluate(snapshot)
    return found
