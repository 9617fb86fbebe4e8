"""One snapshot per tick, whatever a collector does."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from monitor.host.reader import HostReader
from monitor.model import facts
from monitor.model.settings import Settings
from monitor.model.snapshot import HISTORY_STEPS, decode, encode
from monitor.pipeline.pipeline import Pipeline
from monitor.store.store import Store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(source="simulated", gpus=2, dir=(tmp_path,), store=None)


def test_each_tick_makes_one_snapshot_that_survives_its_serializer(settings: Settings) -> None:
    pipeline = Pipeline(settings)
    snapshots = [pipeline.tick() for _ in range(3)]
    pipeline.close()
    assert [snapshot.seq for snapshot in snapshots] == [1, 2, 3]
    assert len({snapshot.monotonic for snapshot in snapshots}) == 3
    assert decode(encode(snapshots[-1])) == snapshots[-1]
    assert [gpu.index for gpu in snapshots[0].gpus] == [0, 1]


def test_every_collector_is_timed_by_itself(settings: Settings) -> None:
    pipeline = Pipeline(settings)
    snapshot = pipeline.tick()
    pipeline.close()
    assert [collector.name for collector in snapshot.collectors] == [
        "rings", "host", "gpu", "holders", "processes", "runs", "facts", "advice", "conditions",
    ]  # fmt: skip
    assert all(collector.ok and collector.seconds >= 0 for collector in snapshot.collectors)


def test_a_failing_collector_costs_its_own_readings_only(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise OSError("disk on fire")

    pipeline = Pipeline(settings)
    good = pipeline.tick()
    with monkeypatch.context() as patch, caplog.at_level(logging.INFO, "gpumon.pipeline"):
        patch.setattr(HostReader, "read", broken)
        bad = [pipeline.tick() for _ in range(3)][-1]
    healed = pipeline.tick()
    pipeline.close()
    assert good.host.memory is not None and bad.host.memory is None, "absent, not the stale reading"
    assert len(bad.gpus) == 2
    host = next(one for one in bad.collectors if one.name == "host")
    assert (host.ok, host.failures, host.error) == (False, 3, "OSError: disk on fire")
    assert host.last_success == good.time
    said = [record.message for record in caplog.records if "host" in record.message]
    assert said == ["collector host failed: OSError: disk on fire"], "the same failure is logged once"
    assert healed.host.memory is not None


@pytest.mark.parametrize(("name", "part"), [("join", "facts"), ("judge", "conditions")])
def test_facts_that_cannot_be_worked_out_end_nothing(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str, part: str
) -> None:
    """A bug of ours that one run triggers must not end the daemon for everybody."""

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(facts, name, broken)
    pipeline = Pipeline(settings)
    snapshot = pipeline.tick()
    pipeline.close()
    assert [one.name for one in snapshot.collectors if not one.ok] == [part] and len(snapshot.gpus) == 2


def test_steps_the_history_had_to_give_up_are_counted_in_the_snapshot(
    settings: Settings, tmp_path: Path
) -> None:
    store = Store(tmp_path / "history.db")
    pipeline = Pipeline(settings, store=store)
    store.lost_steps = 7
    snapshot = pipeline.tick()
    pipeline.close()
    store.close()
    assert snapshot.dropped[HISTORY_STEPS] == 7


def test_a_history_that_cannot_be_written_is_one_line_of_the_log(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    with caplog.at_level(logging.INFO):
        pipeline = Pipeline(settings, store=Store(tmp_path / "file" / "history.db"))
        pipeline.tick()
        last = pipeline.tick()
        pipeline.close()
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1 and told[0].exc_info is None, caplog.text
    assert "gpumon continues without it" in told[0].getMessage()
    assert next(one for one in last.collectors if one.name == "store").failures == 1
