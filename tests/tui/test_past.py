"""History: past runs listed, opened, compared and replayed; preferences kept."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from textual.pilot import Pilot

from monitor.catalog.recording import Recording
from monitor.catalog.rows import RunRow
from monitor.tui import preferences
from monitor.tui.archive import Archive, StoreArchive
from monitor.tui.preferences import Preferences
from monitor.tui.replay import Replay
from monitor.tui.screens.compare import CompareScreen
from monitor.tui.screens.replay import ReplayScreen
from monitor.tui.screens.run import RunScreen
from tests.conftest import PATIENCE, wait_for
from tests.tui import scenes
from tests.tui.past import SLOW, START, Recorded, page
from tests.tui.stage import StagedApp, characters, staged


def run_script(app: StagedApp, script: object, size: tuple[int, int] = (120, 40)) -> None:
    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(pilot, app)  # type: ignore[operator]

    asyncio.run(go())


async def until(pilot: Pilot[None], app: StagedApp, text: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while text not in characters(app):
        assert time.monotonic() < deadline, f"{text!r} never came:\n{characters(app)}"
        await pilot.pause(0.02)


def test_past_runs_are_listed_opened_and_compared() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("h")
        await until(pilot, app, "resnet50-fast")
        await pilot.press("down", "enter")
        await until(pilot, app, "Where the step goes")
        assert isinstance(app.screen, RunScreen) and "No loader workers" in characters(app)
        await pilot.press("escape", "m", "up", "c")
        await until(pilot, app, "B is faster")
        assert isinstance(app.screen, CompareScreen) and "predicted ×2.1 (1.7–2.4)" in characters(app)

    run_script(staged("no-run", archive=Recorded), script)


def test_a_history_that_fails_says_why() -> None:
    class Broken(Archive):
        def rows(self) -> list[RunRow]:
            from monitor.model.errors import UserError

            raise UserError("the history cannot be read: disk on fire")

    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("h")
        await until(pilot, app, "disk on fire")

    run_script(staged("no-run", archive=Broken), script)


def test_the_ledger_shows_on_the_finding() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("tab", "tab", "enter")
        await until(pilot, app, "realised ×2.2")
        assert "✓" in characters(app)

    run_script(staged("data-bound", archive=Recorded), script)


@pytest.mark.slow
def test_a_run_is_replayed_with_seek_and_speed() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("h")
        await until(pilot, app, "resnet50-naive")
        await pilot.press("down", "R")
        await until(pilot, app, "replay")
        screen = app.screen
        assert isinstance(screen, ReplayScreen)
        await pilot.press("space", "greater_than_sign", "full_stop", "right_square_bracket")
        await pilot.pause()
        assert not screen.play.playing and screen.play.at >= START + 70 and screen.play.speed == 16
        assert "50 min 00 s" in characters(app).splitlines()[-2] and "‖" in characters(app)
        await pilot.press("tab", "enter")
        await until(pilot, app, "Configuration")
        assert "replay" in characters(app).splitlines()[0]
        await pilot.press("escape")
        await pilot.press("escape")
        await pilot.pause()
        assert "replay" not in characters(app).splitlines()[0]

    run_script(staged("no-run", archive=Recorded), script)


def test_a_recording_shows_what_was_known_then() -> None:
    recording = Recording(SLOW, page())
    early, late = recording.at(START + 100), recording.at(START + 2000)
    assert early.gpus[0].utilization_ratio == 0.2 and late.gpus[0].utilization_ratio == 0.9
    assert early.gpus[0].power_watts is None
    assert early.findings == () and [finding.id for finding in late.findings] == [scenes.NO_WORKERS.id]
    assert early.runs[0].samples_per_second == 150.0 and early.runs[0].state == "running"
    assert len(early.runs[0].timeline) < len(late.runs[0].timeline)


def test_a_gap_in_the_recording_stays_a_gap() -> None:
    assert Recording(SLOW, page()).at(START - 50).gpus[0].utilization_ratio is None


def test_a_replay_stops_at_the_end_and_stays_inside() -> None:
    replay = Replay(Recording(SLOW, page()))
    replay.seek(START - 1e6)
    assert replay.at == START and replay.share == 0
    replay.seek(START + 2999)
    replay.speed = 64.0
    replay.tick()
    assert replay.at == START + 3000 and not replay.playing and replay.share == 1
    assert len(replay.frame().hosts[0].trails["GPU-0000"]) > 100


def test_an_empty_store_is_no_error(tmp_path: Path) -> None:
    archive = StoreArchive(tmp_path / "absent.db")
    assert archive.rows() == [] and archive.ledger(scenes.NO_WORKERS) == []


def test_preferences_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert preferences.load() == Preferences()
    assert preferences.save(Preferences(theme="gpumon-light", sort="cpu", tree=True))
    assert preferences.load() == Preferences(theme="gpumon-light", sort="cpu", tree=True)
    preferences.place().write_text("{broken")
    assert preferences.load() == Preferences()


@pytest.mark.slow
def test_preferences_are_kept_when_the_app_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    app = staged("eight", preferred=preferences.load())

    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("T", "v", "p", "t", "s")
        await pilot.pause()

    run_script(app, script)
    app.save_preferences()
    kept = wait_for(preferences.load)
    assert (kept.theme, kept.processes, kept.tree, kept.sort) == ("gpumon-light", False, True, "sm")
