"""User functions that return the same value in every step: a constant computed again and again. And those
from whose results nothing is learnt: they return tensors without gradients, such as the triplets to compare.
And those that compute in float64.

Judged by what they return (a checksum of arrays and CPU tensors), so it works for functions that read globals
as well as for those with arguments. Values on a device are not read: that would wait for it.
"""

from __future__ import annotations

import sys
import zlib
from itertools import islice
from types import CodeType
from typing import Any

MOST_CALLS = 3
"""Chosen: calls of one function compared per step."""
MOST_BYTES = 4 << 20
"""Chosen: in larger arrays, a checksum covers only evenly spaced elements, about this many bytes."""
LEAST_PAIRS = 1
"""Steps that must agree with the previous one: a step with many calls is profiled only twice."""
_FEW = 8
"""Chosen: items compared at either end of a container."""
_DOUBLE = "torch.float64"
_PLAIN = (str, bytes, int, float, bool, type(None))


class ReturnValues:
    """Checksums of what each function returned in this step and the previous one."""

    def __init__(self) -> None:
        self._now: dict[CodeType, list[int | None]] = {}
        self._before: dict[CodeType, list[int | None]] = {}
        self._pairs: dict[CodeType, int] = {}
        self._changed: set[CodeType] = set()
        self._learnt: dict[CodeType, bool] = {}
        """Function that has returned tensors → whether one of them carried a gradient."""
        self._doubles: set[CodeType] = set()
        """Functions that have returned a float64 tensor that carries a gradient."""

    def go_on(self) -> None:
        """Another few steps are profiled. What agreed by chance in the first few shows now."""
        self._now = {}

    def returned(self, code: CodeType, value: Any) -> None:
        """A call has ended. A function that once returned something different is ignored."""
        if not self._learnt.get(code):
            for one in _tensors(value):
                self._learnt[code] = self._learnt.get(code, False) or bool(one.requires_grad)
                if one.requires_grad and str(one.dtype) == _DOUBLE:
                    self._doubles.add(code)
        if code in self._changed:
            return
        fingerprints = self._now.setdefault(code, [])
        if len(fingerprints) < MOST_CALLS:
            try:
                fingerprints.append(fingerprint(value))
            except (RuntimeError, TypeError, ValueError):  # an array that cannot be read as bytes
                fingerprints.append(None)

    def step(self) -> None:
        """A step has ended: compare it with the previous one."""
        for code, fingerprints in self._now.items():
            before = self._before.get(code)
            if None in fingerprints or (before is not None and before != fingerprints):
                self._changed.add(code)
            elif before is not None:
                self._pairs[code] = self._pairs.get(code, 0) + 1
        self._before, self._now = self._now, {}

    def constant(self, file: str, line: int, name: str) -> bool:
        """Whether the function around this line returned the same in every step seen."""
        return any(
            pairs >= LEAST_PAIRS and code not in self._changed and _holds(code, file, line, name)
            for code, pairs in self._pairs.items()
        )

    def detached(self, file: str, line: int, name: str) -> bool:
        """Whether the function around this line returned tensors, and never one with a gradient."""
        return any(not learnt and _holds(code, file, line, name) for code, learnt in self._learnt.items())

    def double(self, file: str, line: int, name: str) -> bool:
        """Whether the function around this line returned float64 tensors that carry gradients."""
        return any(_holds(code, file, line, name) for code in self._doubles)


def _tensors(value: Any) -> list[Any]:
    """The tensors that a function returns, by themselves or a few together."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    parts = value if isinstance(value, tuple | list) else (value,)
    return [one for one in parts[:_FEW] if isinstance(one, torch.Tensor)]


def _holds(code: CodeType, file: str, line: int, name: str) -> bool:
    if code.co_filename != file or code.co_name != name:
        return False
    lines = [at for _, _, at in code.co_lines() if at]
    return bool(lines) and min(lines) <= line <= max(lines)


def fingerprint(value: Any) -> int | None:
    """A number that identifies the value; None if it has no array or cannot be read."""
    if isinstance(value, tuple | list):
        fingerprints = [_part(one) for one in (*value[:_FEW], *value[-_FEW:])]
        told = any(not isinstance(one, _PLAIN) for one in value[:_FEW]) or len(value) > _FEW
        return hash((len(value), *fingerprints)) if told and None not in fingerprints else None
    if isinstance(value, dict):
        return fingerprint([len(value), *islice(value.items(), _FEW)])
    return _array(value)


def _part(value: Any) -> int | None:
    return hash(value) if isinstance(value, _PLAIN) else fingerprint(value)


def _array(value: Any) -> int | None:
    """Checksum of an array's bytes; for a large one, of evenly spaced elements."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.requires_grad or value.device.type != "cpu" or value.layout != torch.strided:
            return None
        if value.numel() * value.element_size() > MOST_BYTES and not value.is_contiguous():
            return None  # an expanded view may be far larger than its storage
        flat = value.detach().reshape(-1)
        flat = flat[:: 1 + flat.numel() * flat.element_size() // MOST_BYTES].contiguous()
        raw = flat.view(torch.uint8).numpy() if flat.numel() > 1 else None
    elif numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "biufcSU":
        if value.nbytes > MOST_BYTES and not value.flags.c_contiguous:
            return None
        flat = value.reshape(-1)[:: 1 + value.nbytes // MOST_BYTES]
        raw = numpy.ascontiguousarray(flat).view(numpy.uint8) if flat.size > 1 else None
    else:
        return None
    return None if raw is None else hash((tuple(value.shape), zlib.crc32(raw)))
