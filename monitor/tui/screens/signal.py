"""The confirmation before a signal is sent."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from monitor.tui.signals import CHOICES, Target, send
from monitor.tui.text import Block, Line, Room, Span, fit, line, wrap
from monitor.tui.widgets.panel import Panel


class SignalScreen(ModalScreen[None]):
    """Pick a signal, then confirm: Enter chooses, a second Enter sends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "cancel", "Cancel"),
        Binding("y", "confirm", "Send it", show=False),
    ]

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._chosen: str | None = None

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Panel(self._content, id="question")

    def on_mount(self) -> None:
        panel = self.query_one("#question", Panel)
        panel.styles.height = 10
        panel.focus()

    def _content(self, room: Room) -> Block:
        target = self._target
        lines = [line(Span(f"Process {target.pid} on {target.hostname}", "title"))]
        lines += [line(Span(text, "dim")) for text in wrap(target.text, room.width)[:2]]
        lines += [line(), *(self._ask(room) if self._chosen else self._choices(room))]
        return Block(rows=tuple(lines))

    def _choices(self, room: Room) -> list[Line]:
        rows = [
            line(" ", fit(Span(name, "strong"), 9), Span(text, "dim"), width=room.width, key=name)
            for name, text in CHOICES.items()
        ]
        return [*rows, line(), line(Span("Enter chooses, Escape leaves it alone", "dim"))]

    def _ask(self, room: Room) -> list[Line]:
        question = f"Send {self._chosen} to {self._target.pid}?"
        yes = line(" ", Span("y", "key"), "  yes, send it", width=room.width, key="yes")
        return [
            line(Span(f"▲ {question}", "alarm")),
            line(),
            line(" ", Span("n", "key"), "  no", width=room.width, key="no"),
            yes,
        ]

    def on_panel_chosen(self, event: Panel.Chosen) -> None:
        if type(event) is not Panel.Chosen:
            return
        event.stop()
        if self._chosen is None:
            self._chosen = str(event.key)
            self.query_one("#question", Panel).rebuild()
        elif event.key == "yes":
            self.action_confirm()
        else:
            self.action_cancel()

    def action_confirm(self) -> None:
        if self._chosen is None:
            return
        problem = send(self._target, self._chosen)
        text = problem or f"{self._chosen} sent to {self._target.pid}"
        self.app.notify(text, severity="error" if problem else "information")
        self.dismiss(None)

    def action_cancel(self) -> None:
        self.dismiss(None)
