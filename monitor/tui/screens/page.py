"""What all screens share: the header with its freshness, panels that follow the frame, the footer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Footer

from monitor.tui.frame import Frame
from monitor.tui.text import Block
from monitor.tui.views import top
from monitor.tui.widgets.panel import Panel, Room

if TYPE_CHECKING:
    from monitor.tui.app import GpumonApp
    from monitor.tui.replay import Replay


class Page(Screen[None]):
    """A screen drawn from the app's frame."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", tooltip="Back to the screen before"),
    ]
    crumb = ""
    replay: Replay | None = None
    """Set on the screens of a replay: they are drawn from it, not from what is live."""

    def compose(self) -> ComposeResult:
        yield Panel(self._header, id="header", focusable=False)
        yield from self.body()
        yield Footer(show_command_palette=False)

    def body(self) -> Iterable[Widget]:
        """The panels of this screen."""
        return ()

    @property
    def monitor(self) -> GpumonApp:
        return cast("GpumonApp", self.app)

    @property
    def frame(self) -> Frame:
        return self.replay.frame() if self.replay is not None else self.monitor.frame

    def _header(self, room: Room) -> Block:
        return top.header(self.frame, room, self.crumb)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.show_frame)

    def show_frame(self) -> None:
        """Redraw what the new frame changes."""
        self.share_room()
        for panel in self.query(Panel):
            if panel.display:
                panel.rebuild()

    def share_room(self) -> None:
        """Give panels their heights; called before every redraw and cheap when nothing changes."""

    def on_resize(self) -> None:
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
    """A fixed height, set only when it differs: every change costs a layout."""
    panel.display = height > 0
    wanted = max(0, height)
    current = panel.styles.height
    if current is None or not current.is_cells or current.value != wanted:
        panel.styles.height = wanted
