"""Keys and mouse on the running app: where they lead and what they change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from monitor.model.clock import Moment
from monitor.tui.app import GpumonApp
from monitor.tui.frame import Update
from monitor.tui.screens.environment import EnvironmentScreen
from monitor.tui.screens.finding import FindingScreen
from monitor.tui.screens.gpu import GpuScreen
from monitor.tui.screens.help import HelpScreen
from monitor.tui.screens.overview import Overview
from monitor.tui.screens.processes import ProcessesScreen
from monitor.tui.screens.run import RunScreen
from monitor.tui.screens.signal import SignalScreen
from monitor.tui.widgets.panel import Panel
from tests.tui import scenes
from tests.tui.stage import StagedApp, characters, staged

Play = Callable[[Pilot[None], Any], Awaitable[None]]


def play(app: GpumonApp, script: Play, size: tuple[int, int] = (120, 40)) -> None:
    async def go() -> None:
        async with app.run_test(size=size) as pilot:
            await settle(pilot, app)
            await script(pilot, app)

    asyncio.run(go())


async def settle(pilot: Pilot[None], app: GpumonApp) -> str:
    """Wait until two looks at the screen are alike: a loaded machine paints its first picture in parts."""
    before = ""
    for _ in range(100):
        await pilot.pause(0.02)
        now = characters(app)
        if now == before and now.strip():
            return now
        before = now
    return before


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


@pytest.mark.slow
def test_enter_opens_what_the_cursor_is_on_and_escape_goes_back() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "down", "down", "enter")
        assert isinstance(app.screen, GpuScreen) and "GPU 1" in characters(app)
        await press(pilot, "escape", "tab", "enter")
        assert isinstance(app.screen, RunScreen) and "resnet50-naive" in characters(app)
        await press(pilot, "escape", "tab", "enter")
        assert isinstance(app.screen, FindingScreen)
        await press(pilot, "r")
        assert isinstance(app.screen, RunScreen)
        await press(pilot, "escape", "escape", "escape", "escape")
        assert isinstance(app.screen, Overview)

    play(staged("eight"), script)


def test_help_opens_and_closes() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await press(pilot, "escape")
        assert isinstance(app.screen, Overview)

    play(staged("eight"), script)


@pytest.mark.slow
def test_at_most_six_keys_in_the_footer() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        for keys in (
            (),
            ("enter",),
            ("escape", "tab", "enter"),
            ("escape", "tab", "enter"),
            ("escape", "p"),
            ("escape", "h"),
        ):
            await press(pilot, *keys)
            shown = {
                b.description
                for _, b, enabled, _ in app.screen.active_bindings.values()
                if b.show and enabled
            }
            assert len(shown) <= 6, (app.screen, shown)

    play(staged("eight"), script)


def test_every_shown_key_has_a_tooltip() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        for _, binding, _, tooltip in app.screen.active_bindings.values():
            if binding.show:
                assert tooltip or binding.tooltip, binding

    play(staged("eight"), script)


def test_the_cursor_stays_on_its_thing_when_rows_move() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "p", "down", "down")
        table = app.screen.query_one("#table", Panel)
        before = table.cursor
        await press(pilot, "r")
        assert table.cursor == before

    play(staged("eight"), script)


def test_sixteen_gpus_abreast_move_in_both_directions() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        panel = app.screen.query_one("#gpus", Panel)
        assert panel.cursor == ("gpu", "lab-07", "GPU-0000")
        await press(pilot, "right", "down")
        assert panel.cursor == ("gpu", "lab-07", "GPU-0009")
        await press(pilot, "left", "end")
        assert panel.cursor == ("gpu", "lab-07", "GPU-0007")

    play(staged("sixteen"), script, (80, 24))


@pytest.mark.slow
def test_processes_sort_filter_and_tree() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "p")
        assert app.order.sort == "gpumem"
        await press(pilot, "s")
        assert app.order.sort == "sm"
        await press(pilot, "t")
        assert app.order.tree and "└" in characters(app)
        await press(pilot, "t", "slash", *"llama r3", "enter")
        rows = [text for text in characters(app).splitlines() if "llama-ft" in text]
        assert app.order.text == "llama r3" and not rows
        await press(pilot, "escape", "slash", *"41030", "enter")
        assert "41030" in characters(app) and "41031" not in characters(app)
        await press(pilot, "escape")
        assert not app.screen.query_one("#filter", Input).display and isinstance(app.screen, ProcessesScreen)
        await press(pilot, "escape")
        assert isinstance(app.screen, Overview)

    play(staged("eight"), script)


@pytest.mark.slow
def test_the_overview_is_filtered_ordered_and_narrowed_to_mine() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "slash", *"resnet", "enter")
        shown = characters(app)
        assert "/resnet" in shown.splitlines()[0] and "resnet50-naive" in shown and "reid-pk" not in shown
        await press(pilot, "escape")
        assert "reid-pk" in characters(app) and not app.pick.words
        await press(pilot, "o")
        assert app.pick.order == "number" and "by number" in characters(app).splitlines()[0]
        app.user = "nobody-here"
        await press(pilot, "m")
        assert "no GPU matches" in characters(app) and "no run matches" in characters(app)
        await press(pilot, "m")
        assert "reid-pk" in characters(app)

    play(staged("eight"), script)


def test_the_environment_of_a_process_is_read_on_this_machine_only() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "p", "e")
        assert isinstance(app.screen, EnvironmentScreen)
        await app.workers.wait_for_complete()
        assert "runs on lab-07" in await settle(pilot, app)

    play(staged("eight"), script)


def test_a_click_on_a_title_sorts_and_on_a_row_chooses() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "p")
        head = characters(app).splitlines()[1]
        await pilot.click("#table", offset=(head.index("CPU") + 1, 0))
        await pilot.pause()
        assert app.order.sort == "cpu"
        await pilot.click("#table", offset=(5, 3))
        await pilot.pause()
        table = app.screen.query_one("#table", Panel)
        assert isinstance(table.cursor, tuple)
        assert table.cursor[2] == int(characters(app).splitlines()[4].lstrip(" ▸").split()[0])

    play(staged("eight"), script)


def test_readonly_forbids_signals() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "p", "x")
        assert isinstance(app.screen, ProcessesScreen)

    play(staged("eight", readonly=True), script)


def test_a_signal_asks_twice_and_can_be_left() -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "p", "x")
        assert isinstance(app.screen, SignalScreen)
        await press(pilot, "down", "enter")
        assert "Send SIGTERM to" in characters(app)
        await press(pilot, "enter")  # the cursor stands on "no"
        assert isinstance(app.screen, ProcessesScreen)

    play(staged("eight"), script)


def test_pause_holds_the_picture_and_resume_catches_up() -> None:
    later = scenes.SCENES["data-bound"](scenes.TICKS + 9)

    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        await press(pilot, "space")
        before = characters(app)
        assert "paused" in before
        app.inbox.put(0, later)
        await pilot.pause()
        assert characters(app) == before
        await press(pilot, "space")
        assert app.frame.hosts[0].snapshot == later and "paused" not in characters(app)

    play(staged("data-bound"), script)


def test_updates_that_come_at_once_all_reach_the_graphs() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        trail = app.frame.hosts[0].trails["GPU-0000"]
        before = len(trail)
        for tick in range(5):
            app.inbox.put(0, scenes.SCENES["data-bound"](scenes.TICKS + tick))
        await pilot.pause()
        assert len(trail) == before + 5

    play(staged("data-bound"), script)


def test_the_fix_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(GpumonApp, "copy_to_clipboard", lambda self, text: copied.append(text))

    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "tab", "tab", "enter", "y")

    play(staged("data-bound"), script)
    assert copied and "+     num_workers=6," in copied[0]


def test_a_screenshot_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        await press(pilot, "S")

    play(staged("data-bound"), script)
    [made] = tmp_path.glob("gpumon-*.svg")
    assert "starved" in made.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "theme", ["gpumon-light", "gpumon-contrast", "ansi-dark", "ansi-light", "nord", "textual-light"]
)
def test_themes_change_colours_and_no_character(theme: str) -> None:
    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        before, colours = characters(app), app.palette["alarm"]
        app.theme = theme
        assert await settle(pilot, app) == before and app.palette["alarm"] != colours

    play(staged("data-bound"), script)


def test_without_colour_phases_are_told_by_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def script(pilot: Pilot[None], app: GpumonApp) -> None:
        assert app.plain and "dd data 62 dd" in characters(app)

    play(staged("data-bound"), script)


def test_stale_data_ages_on_the_screen_by_itself() -> None:
    now = [Moment(scenes.NOW, 1000.0 + scenes.TICKS)]

    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        assert "live" in characters(app).splitlines()[0]
        now[0] = Moment(scenes.NOW + 40, 1040.0 + scenes.TICKS)
        app._age()
        await pilot.pause()
        first, second = characters(app).splitlines()[:2]
        assert "stale 40 s" in first and "has sent nothing for 40 s" in second
        assert {
            span.role for line in app.screen.query_one("#runs", Panel)._lines[1:] for span in line.spans
        } == {"stale"}

    play(staged("eight", clock=lambda: now[0]), script)


def test_a_host_that_comes_back_is_live_again() -> None:
    async def script(pilot: Pilot[None], app: StagedApp) -> None:
        app.hub.take([Update(0, None, "no daemon answers", Moment(scenes.NOW, 1000.0 + scenes.TICKS))])
        app.show()
        await pilot.pause()
        assert "disconnected" in characters(app)
        fresh = scenes.SCENES["data-bound"](scenes.TICKS)
        app.hub.take([Update(0, fresh, None, Moment(scenes.NOW, 1000.0 + scenes.TICKS))])
        app.show()
        await pilot.pause()
        assert "disconnected" not in characters(app)

    play(staged("data-bound"), script)
