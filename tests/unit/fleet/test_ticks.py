"""A page of runs over many machines while its Prometheus comes and goes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import cast

import pytest

from monitor.daemon.fleet_ticks import FleetTicks
from monitor.fleet.fleet import REFRESH_SECONDS, Fleet
from monitor.model.errors import UserError
from monitor.model.settings import Settings
from monitor.model.snapshot import Snapshot
from tests import scene


class Scraped:
    """Answers like a fleet, while `trouble` is empty."""

    def __init__(self) -> None:
        self.api = self
        self.url = "http://metrics:9090"
        self.trouble = ""

    def snapshot(self, seq: int = 0) -> Snapshot:
        if self.trouble:
            raise UserError(self.trouble)
        return scene.snapshot(seq)


def test_the_last_picture_stays_while_nobody_answers(caplog: pytest.LogCaptureFixture) -> None:
    """GIVEN a page WHEN Prometheus goes away and comes back THEN the last picture stays, as it was, each
    change is logged once, and afterwards there are new ones."""
    caplog.set_level(logging.WARNING, "gpumon.fleet")
    source = Scraped()
    ticks = FleetTicks(cast("Fleet", source), Settings())
    assert [ticks.tick().seq, ticks.tick().seq] == [1, 2]
    source.trouble = "no Prometheus answers at http://metrics:9090"
    assert [ticks.tick().seq, ticks.tick().seq] == [2, 2]
    source.trouble = ""
    assert ticks.tick().seq == 3
    assert [record.message for record in caplog.records] == [
        "no Prometheus answers at http://metrics:9090",
        "http://metrics:9090 answers again",
    ]


def test_nobody_to_ask_is_said_at_the_start() -> None:
    source = Scraped()
    source.trouble = "no Prometheus answers"
    with pytest.raises(UserError, match="no Prometheus answers"):
        FleetTicks(cast("Fleet", source), Settings())


def test_what_belongs_to_a_machines_daemon_is_left_to_it() -> None:
    """It may run beside that daemon: it claims neither rings nor socket nor history."""
    own = Settings(store=Path("/x/history.db"), socket=Path("/x/gpumon.sock"), otlp="http://x:4318")
    chosen = FleetTicks(cast("Fleet", Scraped()), own).settings
    assert (chosen.dir, chosen.socket, chosen.store, chosen.otlp) == ((), None, None, None)
    assert chosen.interval == REFRESH_SECONDS and chosen.listen == own.listen
