"""What the demo tells of a run: what is known at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from monitor.demo.page import Page
from monitor.demo.story import Story
from monitor.model.snapshot import Snapshot
from tests.unit.advice.build import run_of, snapshot_of
from tests.unit.store.made import finding


def test_the_prediction_shown_is_the_one_made_when_the_run_was_over() -> None:
    """GIVEN a run whose hot lines are looked up as it ends WHEN the daemon saw its process end a moment later
    THEN what it said before, with less known, is not what is shown."""
    live = msgspec.structs.replace(run_of(), id="r", name="demo-naive")
    ended = msgspec.structs.replace(live, state="ended")
    early, late = (
        finding("input.slow_getitem", 1.8, 2.5, 3.1, "r"),
        finding("input.slow_getitem", 2, 3, 4, "r"),
    )
    answers: Iterator[Snapshot] = iter(
        [
            msgspec.structs.replace(snapshot_of(live), findings=(early,)),
            msgspec.structs.replace(snapshot_of(live), findings=(early,)),
            msgspec.structs.replace(snapshot_of(ended), findings=(late,)),
        ]
    )
    polls = iter([None, 0])
    child = SimpleNamespace(poll=lambda: next(polls), returncode=0)
    stage = SimpleNamespace(start=lambda words, log: child, folder=Path("."))
    client = SimpleNamespace(snapshot=lambda: next(answers))
    story = Story(
        cast(Any, stage), cast(Any, client), Page(sys.stdout, held=True), (), quick=True, output=Path("x")
    )
    run, findings = story._train(0)
    assert (run.state, findings) == ("ended", [late])
