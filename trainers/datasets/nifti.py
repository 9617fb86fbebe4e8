"""NIfTI-1 volumes (.nii, .nii.gz): a small reader and writer of the fields training needs."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from pathlib import Path

import numpy as np

HEADER_BYTES = 348
TYPES = {2: "u1", 4: "i2", 8: "i4", 16: "f4", 64: "f8", 256: "i1", 512: "u2", 768: "u4"}
CODES = {kind: code for code, kind in TYPES.items()}


class NiftiError(ValueError):
    """The file is not a volume this reader understands; the message says why."""


def read(path: Path | str) -> np.ndarray:
    """The volume as (depth, height, width); scaled to float32 when the header has a slope."""
    raw = _bytes(Path(path))
    if len(raw) < HEADER_BYTES:
        raise NiftiError("shorter than a NIfTI header")
    order = "<" if struct.unpack_from("<i", raw)[0] == HEADER_BYTES else ">"
    if struct.unpack_from(f"{order}i", raw)[0] != HEADER_BYTES or raw[344:347] not in (b"n+1", b"ni1"):
        raise NiftiError("no NIfTI-1 header")
    dims = struct.unpack_from(f"{order}8h", raw, 40)
    kind = TYPES.get(struct.unpack_from(f"{order}h", raw, 70)[0])
    offset, slope, intercept = struct.unpack_from(f"{order}3f", raw, 108)
    shape = tuple(size for size in dims[1 : 1 + dims[0]] if size > 1) if 0 < dims[0] < 8 else ()
    if kind is None or not 2 <= len(shape) <= 3 or min(shape) < 1:
        raise NiftiError(f"data type or dimensions not supported: {dims}")
    voxels = _voxels(raw, int(offset), np.dtype(order + kind), shape)
    if slope not in (0.0, 1.0) or (slope and intercept):
        return np.asarray(voxels.astype(np.float32) * slope + intercept)
    return voxels.astype(kind, copy=False)


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        # 16 + MAX_WBITS: a gzip stream, inflated in one go
        return zlib.decompress(data, 16 + zlib.MAX_WBITS) if data[:2] == b"\x1f\x8b" else data
    except zlib.error as error:
        raise NiftiError(f"broken gzip stream: {error}") from error


def _voxels(raw: bytes, offset: int, kind: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    if len(raw) < offset + count * kind.itemsize:
        raise NiftiError(f"cut short: {len(raw)} bytes for {shape} voxels")
    flat = np.frombuffer(raw, dtype=kind, count=count, offset=offset)
    # Fortran order x, y, z on disk is C order z, y, x.
    volume = flat.reshape(shape[::-1])
    return volume if volume.ndim == 3 else volume[None]


def write(path: Path | str, volume: np.ndarray, *, level: int = 6) -> None:
    """A (depth, height, width) volume, written whole or not at all; gzip when the name says so."""
    kind = volume.dtype.newbyteorder("=").str[1:]
    if kind not in CODES:
        raise NiftiError(f"data type {volume.dtype} not supported")
    header = bytearray(352)
    struct.pack_into("<i", header, 0, HEADER_BYTES)
    struct.pack_into("<8h", header, 40, 3, *volume.shape[::-1], 1, 1, 1, 1)
    struct.pack_into("<2h", header, 70, CODES[kind], volume.dtype.itemsize * 8)
    struct.pack_into("<8f", header, 76, 1, 1, 1, 1, 1, 1, 1, 1)
    struct.pack_into("<3f", header, 108, 352, 1, 0)
    header[344:348] = b"n+1\0"
    content = bytes(header) + np.ascontiguousarray(volume, dtype=volume.dtype.newbyteorder("<")).tobytes()
    temporary = Path(f"{path}.tmp{os.getpid()}")
    try:
        temporary.write_bytes(gzip.compress(content, level) if str(path).endswith(".gz") else content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
