"""Shared by all screens: the header with its freshness, panels that follow the frame, the footer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

from monitor.language import said, word
from monitor.tui.frame import Frame
from monitor.tui.line_budget import divide
from monitor.tui.panels import PanelSpec
from monitor.tui.pick import ALL, Pick
from monitor.tui.text import Block, Room
from monitor.tui.views.header import header
from monitor.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from monitor.tui.app import GpumonApp
    from monitor.tui.replay import Replay

SPACIOUS = 64
"""From this width the keys in the footer have blanks around them."""


def widget_of(spec: PanelSpec) -> Widget:
    main = Panel(spec.build, id=spec.name, classes=spec.classes, focusable=spec.focusable)
    if spec.side is None:
        return main
    side = Panel(spec.side.build, id=spec.side.name, focusable=spec.side.focusable)
    main.styles.width, side.styles.width = (f"{share}fr" for share in spec.side.widths)
    return Horizontal(main, side, id=spec.outer)


class Keys(Footer):
    """The footer in the reader's language."""

    def compose(self) -> ComposeResult:
        for key in super().compose():
            if isinstance(key, FooterKey):
                key.description = word(key.description)
                key.tooltip = said(str(key.tooltip or ""))
            yield key


class Page(Screen[None]):
    """A screen drawn from the app's frame."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", tooltip="Back to the screen before"),
    ]
    title_text = ""
    """What the header calls this screen."""
    replay: Replay | None = None
    """Set on the screens of a replay, which are drawn from it instead of live data."""

    def panels(self) -> Sequence[PanelSpec]:
        """The panels of this screen, top to bottom: the only place that names them."""
        return ()

    @cached_property
    def specs(self) -> Sequence[PanelSpec]:
        return self.panels()

    def compose(self) -> ComposeResult:
        yield Panel(self._header, id="header", classes="-still -bar", focusable=False)
        yield from self.body()
        yield Keys(show_command_palette=False)

    def body(self) -> Iterable[Widget]:
        """Everything between header and footer; override if that is more than the panels."""
        return map(widget_of, self.specs)

    def on_mount(self) -> None:
        first = next((spec.name for spec in self.specs if spec.focusable), None)
        if first is not None:
            self.query_one(f"#{first}").focus()

    @property
    def monitor(self) -> GpumonApp:
        return cast("GpumonApp", self.app)

    @property
    def frame(self) -> Frame:
        return self.replay.frame() if self.replay is not None else self.monitor.frame

    def _header(self, room: Room) -> Block:
        named = self.title_text != type(self).title_text  # after a run or a GPU: somebody's own words
        return header(self.frame, room, self.title_text if named else word(self.title_text), self.pick)

    @property
    def pick(self) -> Pick:
        """Which part of the frame this screen shows."""
        return ALL

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.show_frame)

    def show_frame(self) -> None:
        """Redraw what the new frame changes."""
        self.share_room()
        for panel in self.query(Panel):
            if panel.display:
                panel.rebuild()
        if self.monitor.covered:
            self.call_after_refresh(self.monitor.uncover)

    def share_room(self) -> None:
        """Set the panels' heights; called before every redraw, and cheap if nothing changes."""
        if not self.specs or not self.query(f"#{self.specs[-1].outer}"):
            return  # resized before it was composed
        room = Room(self.size.width, self.size.height - 2 - self.filter_lines)  # without header and footer
        wants = [spec.wants(room) for spec in self.specs]
        budget = divide(wants, room.height)
        for spec, want, lines in zip(self.specs, wants, budget.lines, strict=True):
            outer = self.query_one(f"#{spec.outer}")
            set_height(outer, lines)
            outer.set_class(budget.spaced and want.spaced, "-spaced")
            if spec.side is not None:
                self.query_one(f"#{spec.side.name}").display = spec.side.fits(room)

    @property
    def filter_lines(self) -> int:
        """Height of the filter, on screens that have one."""
        return 0

    def on_resize(self) -> None:
        for footer in self.query(Footer):
            footer.compact = self.size.width < SPACIOUS
        self.share_room()

    def on_panel_chosen(self, event: Panel.Chosen) -> None:
        if type(event) is Panel.Chosen:
            self.open(event.key)

    def open(self, key: Hashable) -> None:
        self.monitor.open(key)

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()


def set_height(panel: Widget, height: int) -> None:
    """Set a fixed height, but only if it differs: every change costs a layout."""
    panel.display = height > 0
    wanted = max(0, height)
    current = panel.styles.height
    if current is None or not current.is_cells or current.value != wanted:
        panel.styles.height = wanted
