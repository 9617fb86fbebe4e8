"""The overview, drawn once before Textual is loaded, because loading takes longer than asking a daemon.

Same views, same colours; the app paints over it once it is ready. Nothing here imports Textual.
"""

from __future__ import annotations

import os
import termios
import threading
import tty
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.color import ColorSystem
from rich.style import Style

from monitor.tui.ascii import plain
from monitor.tui.codes import Codes, change, codes
from monitor.tui.frame import Frame
from monitor.tui.line_budget import divide
from monitor.tui.overview import overview_panels
from monitor.tui.palette import HIGH_CONTRAST, OWN, SURFACE, Palette, ansi_styles, true_styles
from monitor.tui.panels import PanelSpec
from monitor.tui.pick import ALL, Pick
from monitor.tui.text import Line, Room, Span, beside, fit, safe
from monitor.tui.views import findings
from monitor.tui.views.header import header
from monitor.tui.views.processes import Order

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
"""To the terminal's alternate screen without a cursor, and back."""


@dataclass(frozen=True)
class Glance:
    """What the overview's panels are drawn from before there is a screen."""

    frame: Frame
    picked: Frame
    shows_fix: bool
    shows_processes: bool = True
    chosen_finding: Hashable = None
    order: Order = field(default_factory=Order)


@dataclass(frozen=True)
class Look:
    """The user's theme, and the terminal's capabilities."""

    theme: str = "gpumon-dark"
    ascii_only: bool = False
    pick: Pick = ALL
    processes: bool = True

    @property
    def system(self) -> ColorSystem | None:
        if os.environ.get("NO_COLOR"):
            return None
        if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
            return ColorSystem.TRUECOLOR
        return ColorSystem.EIGHT_BIT if "256" in os.environ.get("TERM", "") else ColorSystem.STANDARD

    def palette(self) -> Palette:
        if self.theme in OWN:
            return Palette(true_styles(OWN[self.theme], self.theme == HIGH_CONTRAST))
        return Palette(ansi_styles(self.theme != "ansi-light"))

    def backgrounds(self) -> tuple[Style, Style]:
        """Background of the screen, and of its first and last line."""
        if self.theme not in OWN:
            return Style.null(), Style.null()
        base = Style(color=OWN[self.theme][0], bgcolor=OWN[self.theme][1])
        return base, base + Style(bgcolor=SURFACE[self.theme])


class FirstPicture:
    """Draws frames until closed; callable from any thread."""

    def __init__(self, out: TextIO, look: Look) -> None:
        self._out, self._look = out, look
        self._lock = threading.Lock()
        self._open = True
        self._before = _keys_wait(out.fileno())
        out.write(ENTER)

    def show(self, frame: Frame) -> None:
        with self._lock:
            if self._open:
                size = os.get_terminal_size(self._out.fileno())
                self._out.write(drawn(frame, (size.columns, size.lines), self._look))
                self._out.flush()

    def close(self) -> None:
        """Stop drawing; what is on the screen stays."""
        with self._lock:
            self._open = False

    def leave(self) -> None:
        """There will be no app: restore the terminal."""
        self.close()
        self._out.write(LEAVE)
        self._out.flush()
        self.restore()

    def restore(self) -> None:
        """Restore how the terminal handles keys."""
        if self._before is not None:
            termios.tcsetattr(self._out.fileno(), termios.TCSANOW, self._before)


def _keys_wait(terminal: int) -> list[Any] | None:
    """Keep keys pressed before there is an app, and do not echo them into the picture."""
    try:
        before = termios.tcgetattr(terminal)
        tty.setcbreak(terminal, termios.TCSANOW)
    except termios.error:
        return None
    return before


def drawn(frame: Frame, size: tuple[int, int], look: Look) -> str:
    """The screen as text for the terminal."""
    width, height = size
    room = Room(width, height - 2, look.ascii_only or look.system is None)
    made = [*header(frame, Room(width, 1), "", look.pick).head, *overview_lines(frame, room, look)]
    made += [Line()] * (height - len(made))
    rows = [fit(line.spans, width) if line.spans else [Span(" " * width)] for line in made[:height]]
    return _painted(rows, look)


def _painted(rows: Sequence[Sequence[Span]], look: Look) -> str:
    styles, (base, bar) = look.palette(), look.backgrounds()
    shown, state = plain if look.ascii_only else safe, Codes()
    out = ["\x1b[H"]
    for index, row in enumerate(rows):
        edge = index in (0, len(rows) - 1)
        for text, role in row:
            wanted = codes((bar if edge else base) + styles[role], look.system)
            out += [change(state, wanted), shown(text)]
            state = wanted
        out.append("\r\n")
    return "".join([*out[:-1], "\x1b[0m"])


def overview_lines(frame: Frame, room: Room, look: Look) -> Iterator[Line]:
    """All panels of the overview, top to bottom."""
    picked = frame.picked(look.pick)
    source = Glance(frame, picked, findings.fix_fits(picked, room), look.processes)
    specs = overview_panels(source)
    wants = [spec.wants(room) for spec in specs]
    budget = divide(wants, room.height)
    for spec, want, lines in zip(specs, wants, budget.lines, strict=True):
        made = list(_panel(spec, room, lines))[:lines] if lines else []
        yield from (*made, *[Line()] * (lines - len(made)))
        if lines and budget.spaced and want.spaced:
            yield Line()


def _panel(spec: PanelSpec, screen: Room, lines: int) -> Iterable[Line]:
    if spec.side is None or not spec.side.fits(screen):
        block = spec.build(Room(screen.width, lines, screen.plain))
        return (*block.head, *block.rows)
    left = screen.width * spec.side.widths[0] // sum(spec.side.widths)
    widths = (left, screen.width - left)
    builds = (spec.build, spec.side.build)
    blocks = [build(Room(width, lines, screen.plain)) for build, width in zip(builds, widths, strict=True)]
    return beside([(*block.head, *block.rows) for block in blocks], widths, gap=0)
