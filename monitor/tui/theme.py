"""What a role looks like. Our own themes are calm: a busy GPU is green-blue, an alarm is the only red.

Every theme of Textual works: what a theme does not say about roles is derived from its colours.
"""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color
from textual.theme import Theme

DARK = Theme(
    name="gpumon-dark", dark=True,
    primary="#6cb2f0", secondary="#8fa3ba", accent="#b79cf0",
    success="#57c7a4", warning="#e8b44f", error="#ff7b72",
    foreground="#d3dbe6", background="#0f131a", surface="#161c26", panel="#1c2430",
    variables={"footer-background": "#161c26", "footer-key-foreground": "#6cb2f0"},
)  # fmt: skip
LIGHT = Theme(
    name="gpumon-light", dark=False,
    primary="#0a63b0", secondary="#54657a", accent="#7145b8",
    success="#0b7a5d", warning="#9a6200", error="#c2261d",
    foreground="#1e2733", background="#fbfcfd", surface="#eef1f5", panel="#e3e8ee",
    variables={"footer-background": "#eef1f5", "footer-key-foreground": "#0a63b0"},
)  # fmt: skip
CONTRAST = Theme(
    name="gpumon-contrast", dark=True,
    primary="#66d9ff", secondary="#ffffff", accent="#ffb3ff",
    success="#33ff99", warning="#ffdd33", error="#ff6b6b",
    foreground="#ffffff", background="#000000", surface="#000000", panel="#262626",
    variables={"footer-background": "#000000", "footer-key-foreground": "#66d9ff"},
)  # fmt: skip
THEMES = (DARK, LIGHT, CONTRAST)

PHASE_DARK = {
    "data": "#e58a4c", "transfer": "#d8bd5a", "forward": "#5b9fe3", "backward": "#7f7fe0",
    "optimizer": "#4fb598", "other": "#46505f", "validate": "#b07cc6", "checkpoint": "#c9789f",
    "log": "#8f9a5b", "extra0": "#7a9a9a", "extra1": "#a08a70", "extra2": "#8a86a8",
}  # fmt: skip
PHASE_LIGHT = {
    "data": "#e08a45", "transfer": "#e0c255", "forward": "#7fb6ee", "backward": "#a6a5f0",
    "optimizer": "#74cdb2", "other": "#c3cad4", "validate": "#d0a6e2", "checkpoint": "#e6a3c3",
    "log": "#bfc987", "extra0": "#a9c6c6", "extra1": "#cdb89f", "extra2": "#b9b5d6",
}  # fmt: skip
PHASE_ANSI = {
    "data": "yellow", "transfer": "magenta", "forward": "blue", "backward": "cyan", "optimizer": "green",
    "other": "bright_black", "validate": "bright_magenta", "checkpoint": "bright_red",
    "log": "bright_yellow", "extra0": "white", "extra1": "bright_cyan", "extra2": "bright_green",
}  # fmt: skip


class Palette(dict[str, Style]):
    """Role → style. Half blocks (two phases in one cell) are made when first asked for."""

    def __missing__(self, role: str) -> Style:
        made = self._half(role) if role.startswith("half.") else self.get("", Style.null())
        self[role] = made
        return made

    def _half(self, role: str) -> Style:
        _, above, below = role.split(".")
        upper, lower = (self.get(f"phase.{name}", Style.null()).bgcolor for name in (above, below))
        return Style(color=upper, bgcolor=lower)


def palette(theme: Theme) -> Palette:
    """Role → style for a theme."""
    return Palette(_ansi() if theme.ansi else _true(theme.name, _colours(theme)))


def _colours(theme: Theme) -> tuple[str, ...]:
    """The theme's colours, completed the way Textual completes them."""
    made = theme.to_color_system().generate()
    names = ("foreground", "background", "panel", "success", "warning", "error", "primary", "accent")
    return tuple(made[name] for name in names)


@lru_cache(maxsize=32)
def _true(name: str, colours: tuple[str, ...]) -> dict[str, Style]:
    fore, back, panel, good, warn, alarm, info, accent = (Color.parse(colour) for colour in colours)
    contrast = name == CONTRAST.name
    dim = back.blend(fore, 0.82 if contrast else 0.56 if back.brightness < 0.5 else 0.66)
    faint = back.blend(fore, 0.45 if contrast else 0.24)
    styles = {
        "": _style(fore), "strong": _style(fore, bold=True), "dim": _style(dim), "faint": _style(faint),
        "stale": _style(back.blend(fore, 0.5 if contrast else 0.4), italic=True),
        "title": _style(info, bold=True), "head": _style(dim), "key": _style(info, bold=True),
        "good": _style(good), "warn": _style(warn, bold=True), "alarm": _style(alarm, bold=True),
        "info": _style(info), "accent": _style(accent), "gain": _style(good, bold=True),
        "add": _style(good, back.blend(good, 0.12)), "del": _style(alarm, back.blend(alarm, 0.12)),
        "badge": Style(color=_rich(back), bgcolor=_rich(warn), bold=True),
        "badge.alarm": Style(color=_rich(back), bgcolor=_rich(alarm), bold=True),
        "cursor": Style(bgcolor=_rich(back.blend(info, 0.30 if contrast else 0.17))),
        "cursor.blur": Style(bgcolor=_rich(panel)),
    }  # fmt: skip
    return styles | _phases(PHASE_DARK if back.brightness < 0.5 else PHASE_LIGHT)


def _phases(colours: dict[str, str]) -> dict[str, Style]:
    out = {}
    for name, value in colours.items():
        ground = Color.parse(value)
        ink = Color.parse("#0b0e13") if ground.brightness > 0.42 else Color.parse("#eef2f7")
        out[f"phase.{name}"] = Style(color=_rich(ink), bgcolor=_rich(ground))
        out[f"ink.{name}"] = Style(color=_rich(ground), bold=True)
    return out


def _rich(colour: Color) -> RichColor:
    return colour.rich_color


def _style(colour: Color, ground: Color | None = None, *, bold: bool = False, italic: bool = False) -> Style:
    back = None if ground is None else _rich(ground)
    return Style(color=_rich(colour), bgcolor=back, bold=bold or None, italic=italic or None)


@lru_cache(maxsize=1)
def _ansi() -> dict[str, Style]:
    """The terminal's own sixteen colours, on its own ground."""
    styles = {
        "": "default", "strong": "bold", "dim": "dim", "faint": "dim", "stale": "dim italic",
        "title": "bold blue", "head": "dim", "key": "bold blue", "good": "green", "warn": "bold yellow",
        "alarm": "bold red", "info": "blue", "accent": "magenta", "gain": "bold green", "add": "green",
        "del": "red", "badge": "bold reverse yellow", "badge.alarm": "bold reverse red",
        "cursor": "reverse", "cursor.blur": "underline",
    }  # fmt: skip
    made = {role: Style.parse(text) for role, text in styles.items()}
    for name, colour in PHASE_ANSI.items():
        made[f"phase.{name}"] = Style.parse(f"black on {colour}")
        made[f"ink.{name}"] = Style.parse(f"bold {colour}")
    return made
