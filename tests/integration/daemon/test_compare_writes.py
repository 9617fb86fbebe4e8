"""Asking changes nothing: only the owner of two runs may have their comparison recorded, with a POST."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.store.store import Store
from tests.conftest import PATIENCE
from tests.faults.people import ALICE
from tests.integration.daemon.process import Daemon
from tests.unit.store import made

NOW = 1_900_000_000.0


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """With a history of two runs of ours and one of Alice's, none of which was seen live."""
    finding = made.no_workers()
    before = made.run(config=made.workers(0), owner_uid=os.getuid())
    after = made.later(rate=190.0, config=made.workers(4), owner_uid=os.getuid())
    hers = made.later(id="hers", rate=190.0, config=made.workers(4), owner_uid=ALICE)
    store = Store(tmp_path / "history.db", max_age=1e9)
    store.append(made.snapshot(NOW, before, after, hers, findings=(finding,)))
    store.close()
    with Daemon(tmp_path, "--source", "none", "--store-max-age", "99999d") as started:
        yield started


def realised(daemon: Daemon) -> list[float | None]:
    return [entry["realised"] for entry in daemon.json("/api/v1/ledger")["entries"]]


def post(daemon: Daemon, path: str, **headers: str) -> int:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(daemon.url + path, method="POST", headers=names)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_comparison_is_noted_by_its_owners_post_alone(daemon: Daemon) -> None:
    ours, mixed = "/api/v1/compare?a=run-1&b=run-2", "/api/v1/compare?a=run-1&b=hers"
    assert daemon.get(ours)[0] == 200 and realised(daemon) == [None], "asking writes nothing"
    assert post(daemon, mixed) == 200 and realised(daemon) == [None], "another user's run proves nothing"
    assert post(daemon, ours) == 200 and realised(daemon) == [pytest.approx(1.9, rel=0.02)]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Origin": "http://evil.example"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
    ids=["form", "fetch", "old browser", "sandbox"],
)
def test_a_page_elsewhere_cannot_post(daemon: Daemon, headers: dict[str, str]) -> None:
    assert post(daemon, "/api/v1/compare?a=run-1&b=run-2", **headers) == 403
    assert realised(daemon) == [None]


def test_our_own_page_could(daemon: Daemon) -> None:
    same = {"Origin": daemon.url, "Sec_Fetch_Site": "same-origin"}
    assert post(daemon, "/api/v1/compare?a=run-1&b=run-2", **same) == 200
