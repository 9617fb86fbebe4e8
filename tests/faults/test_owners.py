"""Users of one machine against each other: nobody can hide, crowd out, rename or rewrite another's run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.model.clock import Moment
from monitor.model.gpu import Source
from monitor.model.host import Host
from monitor.model.owner import user_name
from monitor.model.run import Run
from monitor.model.snapshot import Snapshot, encode
from monitor.runs import discovery, ended, ranks
from monitor.runs.reader import RunReader
from monitor.store.store import Store
from sdk import ring
from tests.conftest import wait_for
from tests.faults.people import ALICE, MALLORY, Person, look, person, require_root, said, shared_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    require_root()
    with shared_folder() as place:
        yield place


@pytest.fixture
def alice(folder: Path) -> Iterator[Person]:
    with person(folder, ALICE) as one:
        yield one


@pytest.fixture
def mallory(folder: Path) -> Iterator[Person]:
    with person(folder, MALLORY) as one:
        yield one


HOSTILE: dict[str, dict[str, dict[str, Any]]] = {
    "hotspots that are no list": {
        "evil.0.ring": {"run": "evil"},
        "evil.0.w0.1.ring": {"run": "evil", "kind": "worker", "config": {"hotspots": 5}},
    },
    "a superscript digit": {"evil.0.ring": {"run": "evil", "device": "cuda:²"}},
    "memory that adds up to infinity": {
        "evil.0.ring": {"run": "evil", "scalars": ["proc.rss_bytes", "cuda.allocated_bytes"]}
    },
    "batches without number": {"evil.0.ring": {"run": "evil", "scalars": ["loader.batches"]}},
}


@pytest.mark.parametrize("rings", HOSTILE.values(), ids=list(HOSTILE))
def test_a_bad_ring_hides_nobody(
    folder: Path, alice: Person, mallory: Person, rings: dict[str, dict[str, Any]]
) -> None:
    alice.train("good", steps=5)
    mallory.write(rings, steps=5, scalars=[1.7e308, 1.7e308])
    reader = RunReader([folder])
    for _ in range(3):
        runs = look(reader)
        assert set(runs) == {f"good@{ALICE}", f"evil@{MALLORY}"} and encode(list(runs.values()))
        mallory.step(2)
        alice.step(1)
    assert look(reader)[f"good@{ALICE}"].steps == 8 and said(reader) == {}


def test_a_run_that_cannot_be_made_is_counted_and_the_others_go_on(
    folder: Path, alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN a bug of ours that one ring triggers THEN its owner and the reason are named, once."""
    alice.train("good", steps=5)
    mallory.train("evil", steps=5)
    real = ranks.live_phase

    def fails(trainer: Any, now: Moment) -> Any:
        if trainer.owner == MALLORY:
            raise ZeroDivisionError("a mistake")
        return real(trainer, now)

    monkeypatch.setattr(ranks, "live_phase", fails)
    reader = RunReader([folder])
    for _ in range(3):
        assert set(look(reader)) == {f"good@{ALICE}"}
    assert said(reader) == {(MALLORY, "run"): 1}
    (trouble,) = reader.trouble.counts()
    assert trouble.example is not None and "a mistake" in trouble.example


def test_a_ring_that_brings_out_a_mistake_is_let_go_of(
    folder: Path, alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice.train("good", steps=5)
    mallory.train("evil", steps=5)
    real = ring.read_scalars
    reader = RunReader([folder])
    look(reader)
    evil = next(one for one in reader.followers if one.owner == MALLORY)

    def stumbles(fd: int) -> object:
        if fd == evil.found.fd:
            raise KeyError("a mistake of ours")
        return real(fd)

    monkeypatch.setattr(ring, "read_scalars", stumbles)
    runs = look(reader)
    assert runs[f"good@{ALICE}"].state == "running" and said(reader) == {(MALLORY, "unexpected"): 1}


def test_an_id_belongs_to_its_owner(folder: Path, alice: Person, mallory: Person) -> None:
    """GIVEN a run of Alice's WHEN Mallory uses its id and claims to be someone else THEN there are two."""
    alice.train("exp", steps=7)
    mallory.write({"other.0.ring": {"run": "exp", "user": user_name(ALICE)}}, steps=3)
    runs = look(RunReader([folder]))
    assert {key: (run.steps, run.owner_uid, run.user) for key, run in runs.items()} == {
        f"exp@{ALICE}": (7, ALICE, user_name(ALICE)),
        f"exp@{MALLORY}": (3, MALLORY, user_name(MALLORY)),
    }
    assert {run.claimed_id for run in runs.values()} == {"exp"}


def test_the_readers_own_runs_have_their_plain_id(folder: Path, mallory: Person) -> None:
    mallory.write({"theirs.0.ring": {"run": "exp"}}, steps=3)
    with person(folder) as own:
        own.train("exp", steps=5)
        runs = look(RunReader([folder]))
    assert {key: run.steps for key, run in runs.items()} == {"exp": 5, f"exp@{MALLORY}": 3}


def test_history_is_not_rewritten_after_the_end(folder: Path, alice: Person, mallory: Person) -> None:
    """GIVEN Alice's run is over and its file gone WHEN Mallory creates one with the same id, file name and
    start THEN Alice's row and steps in the history are unchanged."""
    start = (time.monotonic_ns(), time.time_ns())
    store = Store(folder / "history.db")
    reader = RunReader([folder], sink=store)
    alice.train("exp", steps=7)
    alice.claim_start(*start)
    alice.end()
    store.append(snapshot(list(look(reader).values())))
    (folder / "exp.0.ring").unlink(missing_ok=True)
    row = store.run(f"exp@{ALICE}")
    mallory.train("exp", steps=2)
    mallory.claim_start(*start)
    again = RunReader([folder], sink=store)
    store.append(snapshot(list(look(again).values())))
    assert row is not None and store.run(f"exp@{ALICE}") == row
    assert list(store.steps(f"exp@{ALICE}").step) == list(range(1, 8))
    assert list(store.steps(f"exp@{MALLORY}").step) == [1, 2]
    store.close()


def snapshot(runs: list[Run]) -> Snapshot:
    now = Moment.now()
    return Snapshot(1, now.wall, now.monotonic, 1.0, Source("none", ok=True), Host("here"), runs=tuple(runs))


def test_names_do_not_crowd_out_a_live_run(folder: Path, alice: Person, mallory: Person) -> None:
    """GIVEN thousands of names, both empty files and files of a plausible size WHEN a reader starts THEN it
    sees Alice's run in its first poll."""
    alice.train("good", steps=5)
    mallory.files([f"a{at}.ring" for at in range(9000)])
    mallory.files([f"b{at}.ring" for at in range(3000)], size=ring.DATA_AT + 4096)
    reader = RunReader([folder])
    assert look(reader)[f"good@{ALICE}"].steps == 5
    wait_for(lambda: look(reader) and said(reader).get((MALLORY, "broken")) == 3000, every=0.0)
    assert said(reader)[MALLORY, "size"] == 9000 and said(reader)[MALLORY, "names"] > 0
    assert not any(owner == ALICE for owner, _ in said(reader))


def test_a_folder_larger_than_a_slice_is_listed_in_the_end(
    folder: Path, alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.runs.folder.SLICE", 64)
    mallory.files([f"a{at}.ring" for at in range(500)])
    alice.train("good", steps=5)
    mallory.files([f"b{at}.ring" for at in range(500)])
    reader = RunReader([folder])
    wait_for(lambda: f"good@{ALICE}" in look(reader), every=0.0)
    for _ in range(40):
        look(reader)
    assert len(reader.followers) == 1 and said(reader) == {(MALLORY, "size"): 1000}


def test_who_has_most_rings_gives_way(
    folder: Path, alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN Mallory has taken all the room there is WHEN Alice arrives THEN her runs are visible."""
    monkeypatch.setattr(discovery, "MAX_RINGS", 20)
    mallory.train(*(f"m{at}" for at in range(30)), steps=1)
    reader = RunReader([folder])
    assert len(look(reader)) == 20
    alice.train("one", "two", "three", steps=5)
    runs = look(reader)
    assert len(runs) == 20 and {f"{run}@{ALICE}" for run in ("one", "two", "three")} <= set(runs)
    assert said(reader) == {(MALLORY, "rings"): 3} and len(look(reader)) == 20


def test_ended_runs_of_one_do_not_push_out_those_of_another(
    folder: Path, alice: Person, mallory: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN an ended run of Alice's WHEN Mallory's runs come and go by the hundred THEN hers stays visible,
    his are cut, and he is reported as their owner."""
    monkeypatch.setattr(ended, "MAX_ENDED_PER_OWNER", 16)
    reader = RunReader([folder])
    alice.train("good", steps=5)
    alice.end()
    shown: set[str] = set()
    for turn in range(10):
        mallory.train(*(f"m{turn}-{at}" for at in range(20)), steps=2)
        mallory.end()
        shown |= set(look(reader))
    assert len(shown) == 201, "every one was in view at least once"
    runs = look(reader)
    assert f"good@{ALICE}" in runs and len(runs) == 17
    assert said(reader) == {(MALLORY, "ended"): 200 - 16} and reader.followers == []


def test_a_folder_that_is_a_link_or_a_strangers_is_not_read(folder: Path, mallory: Person) -> None:
    with person(folder) as own:
        own.train("mine", steps=1)
        link = Path(f"{folder}-link")
        link.symlink_to(folder)
        try:
            reader = RunReader([link])
            assert look(reader) == {} and said(reader) == {(0, "folder"): 1}
        finally:
            link.unlink()
        os.chown(folder, MALLORY, -1)
        assert set(look(RunReader([folder]))) == {"mine"}, "root may look into every user's folder"
        pid = os.fork()
        if pid == 0:
            os.setuid(ALICE)
            stranger = RunReader([folder])
            stranger.poll(Moment.now())
            os._exit(0 if said(stranger) == {(MALLORY, "folder"): 1} else 1)
        assert os.waitpid(pid, 0)[1] == 0, "to anybody else a third user's folder is not to be trusted"
