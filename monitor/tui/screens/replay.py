"""The overview, drawn from a recording, with a bar to move through it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from monitor.catalog.recording import Recording
from monitor.model import units
from monitor.tui.line_budget import Wants
from monitor.tui.panels import PanelSpec
from monitor.tui.replay import Replay
from monitor.tui.screens.overview import Overview
from monitor.tui.screens.page import Page
from monitor.tui.screens.routes import screen_for
from monitor.tui.text import Block, Line, Room, Slot, Span

STOPS = 60


class ReplayScreen(Overview):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "Play", tooltip="Stop and continue"),
        Binding("comma", "seek(-10)", "-10 s", show=False, tooltip="Ten seconds back"),
        Binding("full_stop", "seek(10)", "+10 s", key_display=".", tooltip="Ten seconds forward"),
        Binding("left_square_bracket", "speed(-1)", "Slower", show=False, tooltip="Half the speed"),
        Binding("right_square_bracket", "speed(1)", "Faster", show=False, tooltip="Twice the speed"),
        Binding("less_than_sign", "seek(-60)", "-1 min", show=False, tooltip="A minute back"),
        Binding("greater_than_sign", "seek(60)", "+1 min", show=False, tooltip="A minute forward"),
        Binding("0", "seek(-1000000000)", "Start", show=False, tooltip="To the start"),
        Binding("escape", "back", "Back", tooltip="Leave the replay"),
        Binding("slash", "filter", "Filter", show=False, tooltip="Words that must occur"),
        Binding("p", "app.processes", "Processes", show=False),
        Binding("h", "app.history", "History", show=False),
    ]

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.play = self.replay = Replay(recording)
        self.title_text = f"replay {recording.record.run.name}"

    def panels(self) -> Sequence[PanelSpec]:
        bar = PanelSpec("bar", self._bar, lambda room: Wants((1,)), focusable=False, classes="-still -bar")
        return (*super().panels(), bar)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        """Keep playing while this screen, or one opened from it, is in front."""
        front = self.app.screen
        if isinstance(front, Page) and front.replay is self.play and self.play.playing:
            self.play.tick()
            front.show_frame()

    def _bar(self, room: Room) -> Block:
        """The replay's position; a click jumps there."""
        replay, recording = self.play, self.play.recording
        length = recording.end - recording.start
        done_words = f"{units.duration(replay.at - recording.start)} of {units.duration(length)}"
        text = f" {done_words} · {units.clock(replay.at)} "
        width = max(10, room.width - len(text) - 8)
        done = round(replay.share * (width - 1))
        lead = f" {'▶' if replay.playing else '‖'} ×{replay.speed:g}".ljust(7)
        spans = (
            Span(lead, "accent"),
            Span("━" * done, "accent"),
            Span("●", "strong"),
            Span("─" * (width - 1 - done), "faint"),
            Span(text, "dim"),
        )
        stops = min(STOPS, width)
        edges = [7 + width * n // stops for n in range(stops + 1)]
        slots = tuple(
            Slot(edges[n], edges[n + 1], ("jump", recording.start + length * n / max(1, stops - 1)))
            for n in range(stops)
        )
        return Block(head=(Line(spans, slots),))

    def open(self, key: Hashable) -> None:
        match key:
            case ("jump", float(moment)):
                self.play.seek(moment)
                self.show_frame()
            case _:
                made = screen_for(key)
                if isinstance(made, Page):
                    made.replay = self.play
                    self.app.push_screen(made)

    def action_play(self) -> None:
        if self.play.at >= self.play.recording.end:
            self.play.seek(self.play.recording.start)
        self.play.playing = not self.play.playing
        self.show_frame()

    def action_seek(self, by: int) -> None:
        self.play.seek(self.play.at + by)
        self.show_frame()

    def action_speed(self, by: int) -> None:
        self.play.faster(by)
        self.show_frame()
