"""History: past runs listed, opened, compared and replayed; the layout kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from monitor.runs.listing import RunRow
from monitor.tui import layout as layouts
from monitor.tui.archive import Archive, StoreArchive
from monitor.tui.layout import Layout
from monitor.tui.recording import Recording
from monitor.tui.replay import Replay
from monitor.tui.screens.compare import CompareScreen
from monitor.tui.screens.replay import ReplayScreen
from monitor.tui.screens.run import RunScreen
from tests.conftest import wait_for
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
    for _ in range(200):
        await pilot.pause(0.02)
        if text in characters(app):
            return
    raise AssertionError(f"{text!r} never came:\n{characters(app)}")


def test_past_runs_are_listed_opened_and_compared() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("h")
        await until(pilot, app, "resnet50-fast")
        await pilot.press("down", "enter")
        await until(pilot, app, "Where the step goes")
        assert isinstance(app.screen, RunScreen) and "The GPU waits for data" in characters(app)
        await pilot.press("escape", "m", "up", "c")
        await until(pilot, app, "B is faster")
        assert isinstance(app.screen, CompareScreen) and "predicted ×2.1 (1.7–2.4)" in characters(app)

    run_script(staged("no-run", archive=Recorded), script)


def test_a_history_that_fails_says_why() -> None:
    class Broken(Archive):
        def rows(self) -> list[RunRow]:
            from monitor.errors import UserError

            raise UserError("the history cannot be read: disk on fire")

    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("h")
        await until(pilot, app, "disk on fire")

    run_script(staged("no-run", archive=Broken), script)


def test_the_ledger_shows_on_the_finding() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("tab", "tab", "enter")
        await until(pilot, app, "realised ×2.20")
        assert "✓" in characters(app)

    run_script(staged("data-bound", archive=Recorded), script)


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
        assert "50 m 00 s" in characters(app).splitlines()[-2] and "‖" in characters(app)
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
    assert early.findings == () and late.findings == (scenes.NO_WORKERS,)
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


def test_the_layout_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert layouts.load() == Layout()
    assert layouts.save(Layout(theme="gpumon-light", sort="cpu", tree=True))
    assert layouts.load() == Layout(theme="gpumon-light", sort="cpu", tree=True)
    layouts.place().write_text("{broken")
    assert layouts.load() == Layout()


def test_the_layout_is_kept_when_the_app_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    app = staged("eight", layout=layouts.load())

    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await pilot.press("T", "v", "p", "t", "s")
        await pilot.pause()

    run_script(app, script)
    app.keep_layout()
    kept = wait_for(layouts.load)
    assert (kept.theme, kept.processes, kept.tree, kept.sort) == ("gpumon-light", False, True, "sm")
