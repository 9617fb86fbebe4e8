"""Which screen shows what a key names."""

from __future__ import annotations

from collections.abc import Hashable

from textual.screen import Screen


def screen_for(key: Hashable) -> Screen[None] | None:
    return None
