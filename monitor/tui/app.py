"""The app: one inbox of updates, one frame, and the screens drawn from it."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Key
from textual.message import Message
from textual.screen import Screen

from monitor.language import said, word
from monitor.model.clock import Moment
from monitor.model.errors import UserError
from monitor.tui import preferences, screenshot
from monitor.tui.feed import Feed, Inbox, Readers
from monitor.tui.frame import Hub
from monitor.tui.palette import Palette
from monitor.tui.pick import ORDERS, Pick
from monitor.tui.preferences import Preferences
from monitor.tui.screens.overview import Overview
from monitor.tui.screens.page import Page
from monitor.tui.theme import THEMES, palette
from monitor.tui.views.processes import SORTS, Order
from monitor.tui.widgets.minimal_update import MinimalUpdate, Shown

if TYPE_CHECKING:
    from monitor.tui.archive import Archive


OTHER_SCREEN = "\x1b[?1049h"
"""What a driver writes first: switch to the terminal's alternate screen and clear it."""


class Arrived(Message):
    """Something is in the inbox. Several may be posted before the app reads it; one is enough."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Arrived)


class GpumonApp(App[None]):
    """`gpumon tui`."""

    TITLE = "gpumon"
    CSS_PATH = Path(__file__).with_name("style.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space", "pause", "Pause", show=False, tooltip="Freeze the screen; readings continue behind it"
        ),
        Binding("question_mark", "help", "Help", tooltip="All keys and what the symbols mean"),
        Binding("q,ctrl+c", "quit", "Quit", tooltip="Leave; nothing keeps running"),
        Binding("p", "processes", "Processes", show=False, tooltip="Sort, filter, tree, signal"),
        Binding("h", "history", "History", show=False, tooltip="Past runs: open, compare, replay"),
        Binding("S", "save_screenshot", "Screenshot", show=False, tooltip="Save this screen as SVG"),
        Binding("T", "next_theme", "Next theme", show=False, tooltip="The next of gpumon's themes"),
        Binding("ctrl+l", "redraw", "Redraw", show=False, tooltip="Paint the whole screen again"),
        Binding("v", "toggle_processes", "Processes panel", show=False, tooltip="On the overview"),
    ]

    def __init__(
        self,
        feeds: Sequence[Feed],
        *,
        archive: Callable[[], Archive] | None = None,
        preferred: Preferences | None = None,
        theme: str | None = None,
        ascii_only: bool = False,
        readonly: bool = False,
        readers: Readers | None = None,
        covered: bool = False,
        clock: Callable[[], Moment] = Moment.now,
    ) -> None:
        """`readers`: feeds that are already being read. `covered`: a first picture is on the terminal and
        stays until there is a complete screen to replace it."""
        super().__init__(driver_class=_seamless_driver() if covered else None)
        self.covered = covered
        self.early_keys: list[str] = []
        self.on_left: Callable[[], None] = lambda: None
        """Called once the user has the terminal back."""
        self._open_archive = archive
        self.preferences = preferred or Preferences()
        self.ascii_only, self.readonly, self.paused = ascii_only, readonly, False
        sort = self.preferences.sort if self.preferences.sort in SORTS else "gpumem"
        self.order = Order(sort, self.preferences.reverse, "", self.preferences.tree)
        order = self.preferences.order if self.preferences.order in ORDERS else "worst"
        self.user = getpass.getuser()
        self.pick = Pick(order, user=self.user if self.preferences.mine else None)
        self.hub = Hub([(feed.label, feed.mode) for feed in feeds], clock)
        self.readers = readers or Readers(feeds, Inbox())
        self.inbox = self.readers.inbox
        self.inbox.wake = lambda: self.is_running and self.post_message(Arrived())
        self.frame = self.hub.frame()
        self.palette = Palette()
        self.shown = Shown()
        for made in THEMES:
            self.register_theme(made)
        wanted = theme or self.preferences.theme
        self.theme = wanted if wanted in self.available_themes else THEMES[0].name

    @cached_property
    def archive(self) -> Archive:
        """Past runs; the modules for them are loaded on first use."""
        from monitor.tui.archive import Archive

        return self._open_archive() if self._open_archive else Archive()

    @property
    def heard(self) -> bool:
        """Whether every host has sent readings or is known to be silent."""
        return all(host.link != "waiting" for host in self.frame.hosts)

    @property
    def plain(self) -> bool:
        """Whether the parts of a bar must differ by letters because there is no colour."""
        return self.no_color or self.ascii_only

    # ── where data goes ───── ──────────────────────────────────────────────────────────────────────

    def on_mount(self) -> None:
        self.set_class(self.ascii_only, "-ascii")
        self.palette = self._palette()
        self.theme_changed_signal.subscribe(self, self._recolour)
        self.app_resume_signal.subscribe(self, lambda _app: self.shown.forget())
        self.readers.start()
        self.hub.take(self.inbox.drain())
        self.frame = self.hub.frame()
        self.push_screen(Overview())
        self.set_interval(1.0, self._age)

    def on_arrived(self) -> None:
        if not self.paused:
            self._advance()

    def _advance(self) -> None:
        self.hub.take(self.inbox.drain())
        self.show()

    def show(self) -> None:
        """Make the frame for this moment and let the visible screen redraw."""
        self.frame = self.hub.frame(self.paused)
        for screen in reversed(self.screen_stack):
            if isinstance(screen, Page):
                screen.show_frame()
                return

    def _age(self) -> None:
        """Redraw if nothing else did: data that stops arriving must visibly age."""
        if not self.paused and self.hub.clock().monotonic - self.frame.now.monotonic > 0.9:
            self.show()

    def _palette(self) -> Palette:
        """Without colour, alarms get the brightest text, so that they are not paler than the rest."""
        made = palette(self.current_theme)
        if self.no_color:
            made |= {"alarm": made["strong"], "warn": made["strong"], "gain": made["strong"]}
        return made

    def _recolour(self, _theme: object) -> None:
        self.palette = self._palette()
        self.preferences.theme = self.theme
        self.refresh_css(animate=False)
        for widget in self.screen.query("Panel"):
            widget.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Sends updates in few bytes; see `MinimalUpdate`."""
        if self.covered:
            return
        if isinstance(renderable, ChopsUpdate | LayoutUpdate):
            renderable = MinimalUpdate(renderable, self.shown)
        super()._display(screen, renderable)

    def uncover(self) -> None:
        """The first screen is complete: from now on the app paints."""
        if self.covered:
            self.covered = False
            self.action_redraw()
            for key in self.early_keys:  # a key event would be lost as long as nothing has the focus
                self.call_later(self._check_bindings, key)

    def on_resize(self) -> None:
        self.shown.forget()

    def action_redraw(self) -> None:
        """Something else wrote to the terminal: paint everything again."""
        self.shown.forget()
        self.screen.refresh(layout=True)

    # ── where keys lead ─────────────────────────────────────────────────────────────────────────────

    def open(self, key: Hashable) -> None:
        """Open the screen for what was chosen: a GPU, a run, a finding, a process."""
        from monitor.tui.screens.routes import screen_for

        made = screen_for(key)
        if made is not None:
            self.push_screen(made)

    def action_processes(self) -> None:
        self.open(("processes",))

    def action_history(self) -> None:
        self.open(("history",))

    def action_help(self) -> None:
        self.open(("help",))

    def action_pause(self) -> None:
        self.paused = not self.paused
        self._advance() if not self.paused else self.show()

    def action_toggle_processes(self) -> None:
        self.preferences.processes = not self.preferences.processes
        self.show()

    def action_next_theme(self) -> None:
        names = [made.name for made in THEMES] + ["ansi-dark", "ansi-light"]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]
        self.notify(f"theme {self.theme}", timeout=2)

    def action_save_screenshot(self) -> None:
        """Save the screen as SVG in the directory gpumon was started in."""
        target = Path.cwd() / time.strftime("gpumon-%Y%m%d-%H%M%S.svg")
        try:
            screenshot.write(self, target)
        except UserError as error:
            self.notify(error.sentence, severity="error")
            return
        self.notify(f"saved {target.name}")

    def notify(self, message: str, **how: Any) -> None:
        super().notify(said(message), **how)

    async def action_quit(self) -> None:
        self.exit()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for command in super().get_system_commands(screen):
            if command.title != "Screenshot":  # ours fetches no fonts
                yield command
        yield from (SystemCommand(word(one.title), said(one.help), one.callback) for one in self._commands())

    def _commands(self) -> Iterable[SystemCommand]:
        yield SystemCommand("Processes", "Sort, filter, tree, signal", self.action_processes)
        yield SystemCommand("History", "Past runs: open, compare, replay", self.action_history)
        yield SystemCommand("Pause", "Freeze the screen", self.action_pause)
        yield SystemCommand("Save screenshot", "This screen as SVG", self.action_save_screenshot)
        yield SystemCommand(
            "Processes panel", "Show or hide it on the overview", self.action_toggle_processes
        )

    def on_unmount(self) -> None:
        self.readers.stop()
        kept, order = self.preferences, self.order
        kept.sort, kept.reverse, kept.tree = order.sort, order.reverse, order.tree
        kept.order, kept.mine = self.pick.order, self.pick.user is not None

    def save_preferences(self) -> None:
        preferences.save(self.preferences)


def _seamless_driver() -> type[Driver]:
    """Textual's own driver, except that it does not clear the first picture (we are on the alternate screen
    already) and keeps keys pressed before there is a screen to take them, which Textual loses."""
    from textual.drivers.linux_driver import LinuxDriver

    class SeamlessDriver(LinuxDriver):
        _is_there = True

        def write(self, data: str) -> None:
            if self._is_there and data == OTHER_SCREEN:
                self._is_there = False
            else:
                super().write(data)

        def process_message(self, message: Message) -> None:
            app = self._app
            if isinstance(message, Key) and isinstance(app, GpumonApp) and app.covered:
                app.early_keys.append(message.key)
            else:
                super().process_message(message)

    return SeamlessDriver
