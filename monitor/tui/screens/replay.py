"""The overview again, drawn from a recording, with a bar to move in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from monitor.tui import format as show
from monitor.tui.frame import Frame
from monitor.tui.recording import Recording
from monitor.tui.replay import Replay
from monitor.tui.screens.overview import Overview
from monitor.tui.text import Block, Line, Slot, Span
from monitor.tui.widgets.panel import Panel, Room

STOPS = 60


class ReplayScreen(Overview):
    extra_lines = 1
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "play", "Play", tooltip="Stop and go on"),
        Binding("comma", "seek(-10)", "-10 s", key_display=",", tooltip="Ten seconds back"),
        Binding("full_stop", "seek(10)", "+10 s", key_display=".", tooltip="Ten seconds on"),
        Binding("left_square_bracket", "speed(-1)", "Slower", show=False, tooltip="Half the speed"),
        Binding("right_square_bracket", "speed(1)", "Faster", key_display="]", tooltip="Twice the speed"),
        Binding("less_than_sign", "seek(-60)", "-1 min", show=False, tooltip="A minute back"),
        Binding("greater_than_sign", "seek(60)", "+1 min", show=False, tooltip="A minute on"),
        Binding("0", "seek(-1000000000)", "Begin", show=False, tooltip="To the begin"),
        Binding("escape", "back", "Back", tooltip="Leave the replay"),
        Binding("p", "app.processes", "Processes", show=False),
        Binding("h", "app.history", "History", show=False),
    ]

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.replay = Replay(recording)
        self.crumb = f"replay {recording.record.run.name}"

    @property
    def frame(self) -> Frame:
        return self.replay.frame()

    def body(self) -> Iterable[Widget]:
        yield from super().body()
        yield Panel(self._bar, id="bar", focusable=False)

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        if self.is_current and self.replay.playing:
            self.replay.tick()
            self.show_frame()

    def _bar(self, room: Room) -> Block:
        """Where the replay is; a click jumps there."""
        replay, recording = self.replay, self.replay.recording
        length = recording.end - recording.start
        done_words = f"{show.duration(replay.at - recording.start)} of {show.duration(length)}"
        text = f" {done_words} · {show.clock(replay.at)} "
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
                self.replay.seek(moment)
                self.show_frame()

    def action_play(self) -> None:
        if self.replay.at >= self.replay.recording.end:
            self.replay.seek(self.replay.recording.start)
        self.replay.playing = not self.replay.playing
        self.show_frame()

    def action_seek(self, by: int) -> None:
        self.replay.seek(self.replay.at + by)
        self.show_frame()

    def action_speed(self, by: int) -> None:
        self.replay.faster(by)
        self.show_frame()

    def action_back(self) -> None:
        self.app.pop_screen()
