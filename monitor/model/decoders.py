"""Decoders of JSON, made at their first use: each looks at every type inside the one it decodes, which takes
milliseconds, and a process that only writes needs none."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import msgspec

T = TypeVar("T")


@cache
def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of this type, the same one every time."""
    return msgspec.json.Decoder(kind)
