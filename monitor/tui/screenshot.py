"""The screen as a self-contained SVG: no font is fetched when it is opened."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.model.errors import UserError
from monitor.tui.text import cells

if TYPE_CHECKING:
    from monitor.tui.app import GpumonApp

FONT_FACE = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)
FONTS = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"


TEXT = re.compile(r'textLength="([\d.]+)"([^>]*)>([^<]*)(?=</text>)')
"""A piece of text: how long it is to be drawn, other attributes, what it says."""


def svg(app: GpumonApp) -> str:
    """The front screen, with fonts from the reader's machine."""
    made = TEXT.sub(_as_wide_as_its_cells, app.export_screenshot(title="gpumon", simplify=True))
    return FONT_FACE.sub("", made).replace("Fira Code, monospace", FONTS).replace("Fira Code", FONTS)


def _as_wide_as_its_cells(found: re.Match[str]) -> str:
    """Rich counts characters, but a Chinese one takes two cells: they would be drawn over each other."""
    length, rest, text = found.groups()
    shown = unescape(text)
    wide = cells(shown)
    if wide == len(shown):
        return found[0]
    return f'textLength="{round(float(length) * wide / len(shown), 1)}"{rest}>{text}'


def write(app: GpumonApp, target: Path) -> None:
    text = svg(app)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
