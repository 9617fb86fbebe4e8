"""Named numbers outside the records: the newest value of each, in the ring's scalar table."""

from __future__ import annotations

from typing import Any

from .. import ring
from ..writer import MemoryRing, RingWriter


class ScalarTable:
    """Name → slot. The table holds `ring.SCALARS` names; any more are dropped."""

    def __init__(self) -> None:
        self._writer: RingWriter | MemoryRing = MemoryRing()
        self._slots: dict[str, int] = {}
        self.values: dict[str, float] = {}

    def attach(self, writer: RingWriter | MemoryRing) -> None:
        """Write values to this ring from now on, starting with those already known."""
        self._writer = writer
        for name, slot in self._slots.items():
            writer.scalars[slot] = self.values[name]

    @property
    def names(self) -> list[str]:
        return list(self._slots)

    def update(self, values: dict[str, Any]) -> bool:
        """Store numbers; True if there was a new name, so the meta must be written."""
        before = len(self._slots)
        for name, value in values.items():
            number = self.number(value)
            if number is not None:
                self._store(name, number)
        return len(self._slots) > before

    def _store(self, name: str, number: float) -> None:
        slot = self._slots.get(name)
        if slot is None:
            if len(self._slots) >= ring.SCALARS:
                return
            slot = self._slots[name] = len(self._slots)
        self.values[name] = number
        self._writer.scalars[slot] = number

    def number(self, value: Any) -> float | None:
        """The value as a float, without waiting for a device: None for a tensor not on the CPU."""
        if type(value) is float or type(value) is int:
            return float(value)
        device = getattr(value, "device", None)
        if device is not None and getattr(device, "type", "cpu") != "cpu":
            return None
        item = getattr(value, "item", None)
        return float(item() if item is not None else value)
