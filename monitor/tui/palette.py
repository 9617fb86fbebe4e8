"""The style of each role, derived from the few colours of a theme. Does not need Textual."""

from __future__ import annotations

from functools import lru_cache

from rich.style import Style

Colours = tuple[str, str, str, str, str, str, str, str]
"""Foreground, background, panel, good, warning, alarm, information, accent: each as "#rrggbb"."""
HIGH_CONTRAST = "gpumon-contrast"
OWN: dict[str, Colours] = {
    "gpumon-dark": ("#d3dbe6", "#0f131a", "#1c2430", "#57c7a4", "#e8b44f", "#ff7b72", "#6cb2f0", "#b79cf0"),
    "gpumon-light": ("#1e2733", "#fbfcfd", "#e3e8ee", "#0b7a5d", "#9a6200", "#c2261d", "#0a63b0", "#7145b8"),
    HIGH_CONTRAST: ("#ffffff", "#000000", "#262626", "#33ff99", "#ffdd33", "#ff6b6b", "#66d9ff", "#ffb3ff"),
}
"""Our themes. They are calm: a busy GPU is green-blue, and only alarms are red."""
SURFACE = {"gpumon-dark": "#161c26", "gpumon-light": "#eef1f5", "gpumon-contrast": "#000000"}
"""Background of header and footer."""

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


PHASE_INK_LIGHT = {"yellow": "magenta", "cyan": "blue", "white": "black", "bright_yellow": "magenta"}


class Palette(dict[str, Style]):
    """Role → style. Half blocks (two phases in one cell) are made on first use."""

    def __missing__(self, role: str) -> Style:
        made = self._half(role) if role.startswith("half.") else self.get("", Style.null())
        self[role] = made
        return made

    def _half(self, role: str) -> Style:
        _, above, below = role.split(".")
        upper, lower = (self.get(f"phase.{name}", Style.null()).bgcolor for name in (above, below))
        return Style(color=upper, bgcolor=lower)


@lru_cache(maxsize=32)
def true_styles(colours: Colours, contrast: bool = False) -> dict[str, Style]:
    """Role → style, from a theme's eight colours."""
    fore, back, panel, good, warn, alarm, info, accent = colours
    dark = is_dark(back)
    dim = blend(back, fore, 0.82 if contrast else 0.56 if dark else 0.66)
    faint = blend(back, fore, 0.45 if contrast else 0.24)
    styles = {
        "": _style(fore), "strong": _style(fore, bold=True), "dim": _style(dim), "faint": _style(faint),
        "stale": _style(blend(back, fore, 0.5 if contrast else 0.4), italic=True),
        "title": _style(info, bold=True), "head": _style(dim), "key": _style(info, bold=True),
        "good": _style(good), "warn": _style(warn, bold=True), "alarm": _style(alarm, bold=True),
        "info": _style(info), "accent": _style(accent), "gain": _style(good, bold=True),
        "add": _style(good, blend(back, good, 0.12)), "del": _style(alarm, blend(back, alarm, 0.12)),
        "badge": Style(color=back, bgcolor=warn, bold=True),
        "badge.alarm": Style(color=back, bgcolor=alarm, bold=True),
        "cursor": Style(bgcolor=blend(back, info, 0.30 if contrast else 0.17)),
        "cursor.blur": Style(bgcolor=panel),
    }  # fmt: skip
    return styles | _phases(PHASE_DARK if dark else PHASE_LIGHT)


def _phases(colours: dict[str, str]) -> dict[str, Style]:
    out = {}
    for name, fill in colours.items():
        ink = "#0b0e13" if _brightness(fill) > 0.42 else "#eef2f7"
        out[f"phase.{name}"] = Style(color=ink, bgcolor=fill)
        out[f"ink.{name}"] = Style(color=fill, bold=True)
    return out


def _style(colour: str, behind: str | None = None, *, bold: bool = False, italic: bool = False) -> Style:
    return Style(color=colour, bgcolor=behind, bold=bold or None, italic=italic or None)


def blend(colour: str, other: str, share: float) -> str:
    """A colour mixed with a share of another."""
    mixed = (round(a + (b - a) * share) for a, b in zip(_rgb(colour), _rgb(other), strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def is_dark(colour: str) -> bool:
    return _brightness(colour) < 0.5


def _brightness(colour: str) -> float:
    red, green, blue = _rgb(colour)
    return (299 * red + 587 * green + 114 * blue) / 255_000


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@lru_cache(maxsize=2)
def ansi_styles(dark: bool = True) -> dict[str, Style]:
    """The terminal's own sixteen colours, on its own background. Yellow and cyan text is unreadable on white,
    so a light terminal gets magenta and blue."""
    warn, accent = ("yellow", "magenta") if dark else ("magenta", "blue")
    styles = {
        "": "default", "strong": "bold", "dim": "dim", "faint": "dim", "stale": "dim italic",
        "title": "bold blue", "head": "dim", "key": "bold blue", "good": "green", "warn": f"bold {warn}",
        "alarm": "bold red", "info": "blue", "accent": accent, "gain": "bold green", "add": "green",
        "del": "red", "badge": f"bold reverse {warn}", "badge.alarm": "bold reverse red",
        "cursor": f"not dim {'black on cyan' if dark else 'white on blue'}", "cursor.blur": "none",
    }  # fmt: skip
    if dark:  # blue on black is the least readable of the sixteen
        styles |= {"title": "bold cyan", "key": "bold cyan", "info": "cyan"}
    made = {role: Style.parse(text) for role, text in styles.items()}
    for name, colour in PHASE_ANSI.items():
        made[f"phase.{name}"] = Style.parse(f"{'white' if colour == 'bright_black' else 'black'} on {colour}")
        made[f"ink.{name}"] = Style.parse(f"bold {colour if dark else PHASE_INK_LIGHT.get(colour, colour)}")
    return made
