"""The app: one inbox of updates, one frame, screens drawn from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual._compositor import ChopsUpdate
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen

from monitor.clock import Moment
from monitor.errors import UserError
from monitor.tui import layout as layouts
from monitor.tui import picture
from monitor.tui.feed import Feed, Inbox, Readers
from monitor.tui.frame import Hub
from monitor.tui.layout import Layout
from monitor.tui.screens.overview import Overview
from monitor.tui.screens.page import Page
from monitor.tui.theme import THEMES, Palette, palette
from monitor.tui.views.processes import SORTS, Order
from monitor.tui.widgets.tight import TightUpdate

if TYPE_CHECKING:
    from monitor.tui.archive import Archive


class Arrived(Message):
    """Something is in the inbox. Many may come before the app looks: one is enough."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Arrived)


class GpumonApp(App[None]):
    """`gpumon tui`."""

    TITLE = "gpumon"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 — Textual declares it so
        (0, "-narrow"),
        (110, "-wide"),
    ]
    CSS_PATH = Path(__file__).with_name("style.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause", tooltip="Hold the picture; readings go on behind it"),
        Binding("question_mark", "help", "Help", tooltip="All keys and what the marks mean"),
        Binding("q,ctrl+c", "quit", "Quit", tooltip="Leave; nothing stays behind"),
        Binding("p", "processes", "Processes", show=False, tooltip="Sort, filter, tree, signal"),
        Binding("h", "history", "History", show=False, tooltip="Past runs: open, compare, replay"),
        Binding("S", "picture", "Screenshot", show=False, tooltip="Save this screen as SVG"),
        Binding("T", "next_theme", "Next theme", show=False, tooltip="The next of gpumon's themes"),
        Binding("v", "toggle_processes", "Processes panel", show=False, tooltip="On the overview"),
    ]

    def __init__(
        self,
        feeds: Sequence[Feed],
        *,
        archive: Callable[[], Archive] | None = None,
        layout: Layout | None = None,
        theme: str | None = None,
        ascii_only: bool = False,
        readonly: bool = False,
        clock: Callable[[], Moment] = Moment.now,
    ) -> None:
        super().__init__()
        self._open_archive = archive
        self.prefs = layout or Layout()
        self.ascii_only, self.readonly, self.paused = ascii_only, readonly, False
        sort = self.prefs.sort if self.prefs.sort in SORTS else "gpumem"
        self.order = Order(sort, self.prefs.reverse, "", self.prefs.tree)
        self.hub = Hub([(feed.label, feed.mode) for feed in feeds], clock)
        self.inbox = Inbox(lambda: self.is_running and self.post_message(Arrived()))
        self.readers = Readers(feeds, self.inbox)
        self.frame = self.hub.frame()
        self.palette = Palette()
        for made in THEMES:
            self.register_theme(made)
        wanted = theme or self.prefs.theme
        self.theme = wanted if wanted in self.available_themes else THEMES[0].name

    @cached_property
    def archive(self) -> Archive:
        """The past; its modules are loaded when somebody asks for it."""
        from monitor.tui.archive import Archive

        return self._open_archive() if self._open_archive else Archive()

    @property
    def plain(self) -> bool:
        """True when parts of a bar must differ by letters because colour is off."""
        return self.no_color or self.ascii_only

    # ── the way of the data ──────────────────────────────────────────────────────────────────────

    def on_mount(self) -> None:
        self.set_class(self.ascii_only, "-ascii")
        self.palette = self._palette()
        self.theme_changed_signal.subscribe(self, self._recolour)
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
        """Make the frame of this moment and let the visible screen redraw."""
        self.frame = self.hub.frame(self.paused)
        for screen in reversed(self.screen_stack):
            if isinstance(screen, Page):
                screen.show_frame()
                return

    def _age(self) -> None:
        """Data that stops coming must be seen to age: redraw when nothing else did."""
        if not self.paused and self.hub.clock().monotonic - self.frame.now.monotonic > 0.9:
            self.show()

    def _palette(self) -> Palette:
        """Without colour an alarm must not be greyer than the rest: it is the brightest text."""
        made = palette(self.current_theme)
        if self.no_color:
            made |= {"alarm": made["strong"], "warn": made["strong"], "gain": made["strong"]}
        return made

    def _recolour(self, _theme: object) -> None:
        self.palette = self._palette()
        self.prefs.theme = self.theme
        self.refresh_css(animate=False)
        for widget in self.screen.query("Panel"):
            widget.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Partial updates go out in few bytes; see `TightUpdate`."""
        if type(renderable) is ChopsUpdate:
            renderable = TightUpdate(renderable.chops, renderable.spans, renderable.chop_ends)
        super()._display(screen, renderable)

    # ── going places ─────────────────────────────────────────────────────────────────────────────

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
        self.prefs.processes = not self.prefs.processes
        self.show()

    def action_next_theme(self) -> None:
        names = [made.name for made in THEMES] + ["ansi-dark", "ansi-light"]
        at = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(at + 1) % len(names)]
        self.notify(f"theme {self.theme}", timeout=2)

    def action_picture(self) -> None:
        """An SVG of the screen in the directory gpumon was started in."""
        target = Path.cwd() / time.strftime("gpumon-%Y%m%d-%H%M%S.svg")
        try:
            picture.write(self, target)
        except UserError as error:
            self.notify(error.sentence, severity="error")
            return
        self.notify(f"saved {target.name}")

    async def action_quit(self) -> None:
        self.exit()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for command in super().get_system_commands(screen):
            if command.title != "Screenshot":  # ours fetches no fonts
                yield command
        yield SystemCommand("Processes", "Sort, filter, tree, signal", self.action_processes)
        yield SystemCommand("History", "Past runs: open, compare, replay", self.action_history)
        yield SystemCommand("Pause", "Hold the picture", self.action_pause)
        yield SystemCommand("Save screenshot", "This screen as SVG", self.action_picture)
        yield SystemCommand(
            "Processes panel", "Show or hide it on the overview", self.action_toggle_processes
        )

    def on_unmount(self) -> None:
        self.readers.stop()
        self.prefs.sort, self.prefs.reverse, self.prefs.tree = (
            self.order.sort,
            self.order.reverse,
            self.order.tree,
        )

    def keep_layout(self) -> None:
        layouts.save(self.prefs)
