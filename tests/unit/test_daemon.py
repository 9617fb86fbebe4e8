"""The ticker's grid and the readiness rule, without a process."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from monitor.daemon import Ticker, watched
from monitor.settings import Settings
from monitor.snapshot import Snapshot, Source
from monitor.web.service import Service
from tests import scene
from tests.conftest import wait_for


class Slow:
    """A pipeline whose ticks take as long as told; the one after the last raises."""

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
    ticker.join(5)
    return service, ticker


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_slow_tick_costs_ticks_and_is_never_made_up_for(tmp_path: Path) -> None:
    pipeline = Slow(0.1, [0.0, 0.35, 0.0, 0.0])
    service, ticker = run_ticker(pipeline, tmp_path)
    offsets = [at - pipeline.begun[0] for at in pipeline.begun]
    assert service.own.missed_ticks >= 3
    assert min(after - before for before, after in pairwise(offsets)) > 0.03, "no burst"
    assert all(offset % 0.1 < 0.08 for offset in offsets), "still on the grid"
    assert ticker.failed, "a ticker that dies says so, and the daemon ends"


def test_readiness_needs_fresh_data_and_an_answering_source(tmp_path: Path) -> None:
    service = Service(Settings(dir=(tmp_path,)))
    assert service.not_ready() == "no snapshot has been made yet"
    fresh = msgspec.structs.replace(scene.snapshot(), monotonic=time.monotonic())
    service.feed.publish(fresh)
    assert service.not_ready() is None, "one of two GPUs is lost: the other's data is good"
    service.feed.publish(msgspec.structs.replace(fresh, monotonic=time.monotonic() - 4))
    assert "the newest snapshot is 4.0 s old" in (service.not_ready() or "")
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
