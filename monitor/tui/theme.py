"""Our Textual themes, and the style of roles in any theme.

Every Textual theme works: styles it does not define for our roles are derived from its colours.
"""

from __future__ import annotations

from textual.color import Color
from textual.theme import Theme

from monitor.tui.palette import HIGH_CONTRAST, OWN, SURFACE, Palette, ansi_styles, is_dark, true_styles

SECONDARY = {"gpumon-dark": "#8fa3ba", "gpumon-light": "#54657a", "gpumon-contrast": "#ffffff"}


def _theme(name: str) -> Theme:
    fore, back, panel, good, warn, alarm, info, accent = OWN[name]
    surface = SURFACE[name]
    return Theme(
        name=name, dark=is_dark(back), primary=info, secondary=SECONDARY[name], accent=accent,
        success=good, warning=warn, error=alarm, foreground=fore, background=back, surface=surface,
        panel=panel,
        variables={"footer-background": surface, "footer-key-foreground": info},
    )  # fmt: skip


THEMES = tuple(map(_theme, OWN))


def palette(theme: Theme) -> Palette:
    """Role → style for a theme."""
    if theme.ansi:
        return Palette(ansi_styles(theme.dark))
    if theme.name in OWN:
        return Palette(true_styles(OWN[theme.name], theme.name == HIGH_CONTRAST))
    made = theme.to_color_system().generate()
    names = ("foreground", "background", "panel", "success", "warning", "error", "primary", "accent")
    fore, back, panel, good, warn, alarm, info, accent = (Color.parse(made[name]).hex6 for name in names)
    return Palette(true_styles((fore, back, panel, good, warn, alarm, info, accent)))
