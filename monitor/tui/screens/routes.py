"""Maps a key to the screen that shows it. Screens are imported when first opened."""

from __future__ import annotations

from collections.abc import Hashable

from textual.screen import Screen


def screen_for(key: Hashable) -> Screen[None] | None:
    """A fresh screen for ("gpu", host, uuid), ("run", host, id), a finding's key, ("help",) …"""
    match key:
        case ("run", str(host), str(run_id)):
            from monitor.tui.screens.run import RunScreen

            return RunScreen(host, run_id)
        case ("finding", *_):
            from monitor.tui.screens.finding import FindingScreen

            return FindingScreen(key)
        case ("gpu", str(host), str(uuid)):
            from monitor.tui.screens.gpu import GpuScreen

            return GpuScreen(host, uuid)
        case ("help",):
            from monitor.tui.screens.help import HelpScreen

            return HelpScreen()
    return _more(key)


def _more(key: Hashable) -> Screen[None] | None:
    match key:
        case ("processes",):
            from monitor.tui.screens.processes import ProcessesScreen

            return ProcessesScreen()
        case ("history",):
            from monitor.tui.screens.history import HistoryScreen

            return HistoryScreen()
        case ("process", str(_), int(_), _):
            from monitor.tui.screens.processes import ProcessesScreen

            return ProcessesScreen()
    return None
