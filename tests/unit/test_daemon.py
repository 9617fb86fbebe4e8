"""The ticker's grid and the readiness rule, without a process."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from monitor.daemon.daemon import Ticker, next_due, watched
from monitor.model.gpu import Source
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot
from monitor.web.service import Service
from tests import scene
from tests.conftest import PATIENCE, wait_for


class Slow:
    """A pipeline whose ticks take as long as told; the tick after the last raises."""

    def __init__(self, interval: float, durations: list[float]) -> None:
        self.settings = SimpleNamespace(interval=interval)
        self.begun: list[float] = []
        self._durations = durations

    def tick(self) -> Snapshot:
        self.begun.append(time.monotonic())
        if len(self.begun) > len(self._durations):
            raise RuntimeError("no more")
        time.sleep(self._durations[len(self.begun) - 1])
        return scene.snapshot(len(self.begun))


def run_ticker(pipeline: Any, tmp_path: Path) -> tuple[Service, Ticker]:
    service = Service(Settings(dir=(tmp_path,)))
    died = threading.Event()
    ticker = Ticker(pipeline, service, died.set)
    ticker.start()
    wait_for(died.is_set)
    ticker.join(PATIENCE)
    return service, ticker


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (10.2, (11.0, 0)),
        (11.0, (11.0, 0)),
        (11.1, (12.0, 1)),
        (13.5, (14.0, 3)),
        (3610.5, (3611.0, 3600)),
    ],
    ids=["in time", "just", "late", "very late", "after an hour's sleep"],
)
def test_ticks_stay_on_the_grid_and_are_never_made_up_for(now: float, expected: tuple[float, int]) -> None:
    assert next_due(10.0, now, 1.0) == expected


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_missed_ticks_are_counted_and_a_ticker_that_dies_says_so(tmp_path: Path) -> None:
    service, ticker = run_ticker(Slow(0.1, [0.0, 0.35, 0.0]), tmp_path)
    assert service.own.missed_ticks >= 2
    assert ticker.failed


def test_readiness_needs_fresh_data_and_an_answering_source(tmp_path: Path) -> None:
    service = Service(Settings(dir=(tmp_path,)))
    assert service.not_ready() == "no snapshot has been made yet"
    fresh = msgspec.structs.replace(scene.snapshot(), monotonic=time.monotonic() + PATIENCE)
    service.feed.publish(fresh)
    assert service.not_ready() is None, "one of two GPUs is lost: the other's data is good"
    service.feed.publish(msgspec.structs.replace(fresh, monotonic=time.monotonic() - 4))
    assert re.search(r"newest snapshot is \d+ s old", service.not_ready() or "")
    service.feed.publish(msgspec.structs.replace(fresh, gpus=(scene.lost_gpu(),)))
    assert service.not_ready() == "no GPU answers (GPU 1: lost, GPU is lost)"
    service.feed.publish(msgspec.structs.replace(fresh, source=Source("nvml", ok=False, detail="hung")))
    assert service.not_ready() == "the GPU source (nvml) does not answer: hung"
    service.feed.publish(msgspec.structs.replace(fresh, source=Source("none", detail="no driver"), gpus=()))
    assert service.not_ready() is None, "the host alone is what was asked for"


def test_what_is_watched_in_one_sentence() -> None:
    snapshot = scene.snapshot()
    assert watched(snapshot) == "2 GPUs through NVML, driver 550.54, and the host"
    simulated = msgspec.structs.replace(snapshot, source=Source("simulated"), gpus=(scene.gpu(),))
    assert watched(simulated) == "SIMULATED readings, not real ones: 1 GPU and the host"
