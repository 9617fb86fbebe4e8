"""Writing a ring: open its file, commit records, grow, close. One writer per ring, in one process."""

from ._children import note_terminated, watch_children
from ._file import RingWriter, is_locked
from ._open import NoRing, SwitchedOff, disabled, open_ring, prepare
from ._slots import FOLD, MemoryRing, Slots

__all__ = [
    "FOLD",
    "MemoryRing",
    "NoRing",
    "RingWriter",
    "Slots",
    "SwitchedOff",
    "disabled",
    "is_locked",
    "note_terminated",
    "open_ring",
    "prepare",
    "watch_children",
]
