"""What a screen is made of: a list of panels, each with a function that builds it and the room it wants.

Nothing here needs Textual: the first picture is drawn from the same list before Textual is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from monitor.tui.line_budget import Wants
from monitor.tui.text import Block, Room

WIDE = 110
"""From this width a screen has two columns."""

Build = Callable[[Room], Block]


@dataclass(frozen=True, slots=True)
class Side:
    """A panel to the right of another, shown if `fits` says so for the screen."""

    name: str
    build: Build
    fits: Callable[[Room], bool] = lambda screen: screen.width >= WIDE
    widths: tuple[int, int] = (11, 10)
    """Shares of the width: the panel on the left, and this one."""
    focusable: bool = True


@dataclass(frozen=True, slots=True)
class PanelSpec:
    """A panel of a screen: how it is built in the room it gets, and how much room it wants."""

    name: str
    build: Build
    wants: Callable[[Room], Wants] = lambda screen: Wants((3,), takes_rest=True)
    focusable: bool = True
    classes: str = ""
    side: Side | None = None

    @property
    def outer(self) -> str:
        """Name of the widget whose height is set: the panel itself, or the row it is in."""
        return self.name if self.side is None else f"{self.name}-row"
