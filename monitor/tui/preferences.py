"""The user's preferences, kept in the configuration directory between sessions."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Preferences(msgspec.Struct, kw_only=True):
    """A missing or broken file does no harm: the defaults apply."""

    theme: str = "gpumon-dark"
    processes: bool = True
    sort: str = "gpumem"
    reverse: bool = True
    tree: bool = False
    order: str = "worst"
    mine: bool = False


def place() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "gpumon" / "tui.json"


def load() -> Preferences:
    try:
        return msgspec.json.decode(place().read_bytes(), type=Preferences)
    except (OSError, msgspec.MsgspecError):
        return Preferences()


def save(preferences: Preferences) -> bool:
    """Write the file atomically; False if it cannot be written."""
    target = place()
    fresh = target.with_suffix(".new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(preferences), indent=2) + b"\n")
        fresh.replace(target)
    except OSError:
        return False
    return True
