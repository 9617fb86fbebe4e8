"""All keys, and what the symbols and colours mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from monitor.language import cells, word
from monitor.tui.text import Block, Line, Room, Span, beside, fit, line
from monitor.tui.views.parts import section
from monitor.tui.widgets.graph import SHORT, role_of
from monitor.tui.widgets.panel import Panel

KEYS = {
    "Everywhere": (
        ("Tab, Shift-Tab", "next, previous panel"),
        ("↑ ↓ ← →, j k", "move; PgUp PgDn Home End too"),
        ("Enter, click", "open what the cursor is on"),
        ("Escape", "back"),
        ("p", "processes"),
        ("h", "history"),
        ("/", "filter by words"),
        ("o", "another order of the GPUs"),
        ("m", "only yours, or all"),
        ("Space", "pause and continue"),
        ("v", "processes on the overview"),
        ("T", "next theme"),
        ("S", "save the screen as SVG"),
        ("Ctrl-L", "redraw the screen"),
        ("Ctrl-P", "all commands"),
        ("?", "this help"),
        ("q", "quit"),
    ),
    "Processes": (
        ("s < >, click a title", "sort by another column"),
        ("r", "reverse the order"),
        ("t", "tree of trainers and workers"),
        ("e", "environment of the process"),
        ("x", "send a signal (asks first)"),
    ),
    "Finding": (("y", "copy the change"), ("r", "open its run")),
    "History": (("m", "mark a run"), ("c", "compare the two marked"), ("R", "replay the chosen run")),
    "Replay": (
        (", .", "10 s back, forward"),
        ("< >", "a minute back, forward"),
        ("[ ]", "slower, faster"),
        ("Space", "stop and continue"),
        ("0, click the bar", "to the start, to there"),
    ),
}
SYMBOLS = (
    ("●", "good", "busy or healthy: all is well"),
    ("◐", "warn", "partly busy while a run is on it"),
    ("▲", "alarm", "starved or stalled while a run is on it: act"),
    ("◆", "warn", "held back: power, heat, or a warning"),
    ("○", "dim", "idle, or a hint"),
    ("✕", "alarm", "lost, hung, failed, no answer"),
    ("◌", "warn", "stale: the age says how old"),
)


class HelpScreen(ModalScreen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,enter", "close", "Close")]

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog", classes="-help"):
            yield Panel(self._content, id="help")

    def on_mount(self) -> None:
        self.query_one("#help").focus()

    def action_close(self) -> None:
        self.dismiss(None)

    def _content(self, room: Room) -> Block:
        left = [made for title, keys in KEYS.items() for made in _keys(title, keys)]
        right = [*_symbols(), line(), *_phases(), line(), *_words()]
        if room.width < 96:
            return Block(rows=(*left, *right))
        width = (room.width - 2) // 2
        return Block(rows=tuple(beside([left, right], [width, width])))


def _keys(title: str, keys: tuple[tuple[str, str], ...]) -> list[Line]:
    return [
        section(title),
        *(line("   ", fit(Span(key, "key"), 21), word(text)) for key, text in keys),
        line(),
    ]


def _symbols() -> list[Line]:
    return [
        section("Symbols"),
        *(line("   ", Span(symbol, role), f"  {text}") for symbol, role, text in SYMBOLS),
    ]


def _phases() -> list[Line]:
    names = {
        "data": "waiting for the loader",
        "transfer": "copies to the GPU",
        "forward": "",
        "backward": "",
        "optimizer": "",
        "other": "between the named phases",
    }
    rows = [
        line(
            "   ",
            Span(f" {cells.left(word(SHORT[name]), 6)}", role_of(name)),
            f"  {word(name)}",
            Span(f"  {text}", "dim"),
        )
        for name, text in names.items()
    ]
    return [section("Where a step goes"), *rows]


def _words() -> list[Line]:
    facts = (
        ("starved", "the GPU had nothing to do"),
        ("trend", "throughput against its own best"),
        ("predicted gain", "step rate after the fix"),
        ("—", "not known, never zero"),
    )
    return [
        section("Words"),
        *(line("   ", fit(Span(word(name), "strong"), 15), Span(text, "dim")) for name, text in facts),
    ]
