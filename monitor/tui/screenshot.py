"""The screen as a self-contained SVG: no font is fetched when it is opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from monitor.model.errors import UserError

if TYPE_CHECKING:
    from monitor.tui.app import GpumonApp

FONT_FACE = re.compile(r"@font-face\s*\{.*?\}\s*", re.DOTALL)
FONTS = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"


def svg(app: GpumonApp) -> str:
    """The front screen, with fonts from the reader's machine."""
    made = app.export_screenshot(title="gpumon", simplify=True)
    return FONT_FACE.sub("", made).replace("Fira Code, monospace", FONTS).replace("Fira Code", FONTS)


def write(app: GpumonApp, target: Path) -> None:
    text = svg(app)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error
