"""What the user arranged, kept in the configuration directory between sessions."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Layout(msgspec.Struct, kw_only=True):
    """All of it may be deleted or broken without harm: then the defaults apply."""

    theme: str = "gpumon-dark"
    processes: bool = True
    sort: str = "gpumem"
    reverse: bool = True
    tree: bool = False


def place() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "gpumon" / "tui.json"


def load() -> Layout:
    try:
        return msgspec.json.decode(place().read_bytes(), type=Layout)
    except (OSError, msgspec.MsgspecError):
        return Layout()


def save(layout: Layout) -> bool:
    """Write it whole or not at all; False when the place cannot be written."""
    target = place()
    fresh = target.with_suffix(".new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(layout), indent=2) + b"\n")
        fresh.replace(target)
    except OSError:
        return False
    return True
