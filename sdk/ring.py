"""The ring: one file per rank in shared memory, a flight recorder of training steps.

The writer maps the file and stores aligned 8-byte words; it needs no thread, no lock and no system
call per step. The reader uses only `pread` (reading a mapped file that someone truncates raises
SIGBUS) and treats every file as hostile. This module defines only the format and imports only the
standard library. From `sdk`, `monitor` may import this module and `statistics`, nothing else.

Layout (little-endian 64-bit words)::

    0      header words, see `H_*`
    1024   scalar table: SCALARS float64 values; their names are in the meta JSON
    2048   meta JSON (capacity META_BYTES), guarded by H_META_SEQ (odd: being written)
    DATA   slots of SLOT_WORDS words; record n (1-based) is in slot (n - 1) % slots

A record is committed in the order  w[0] = 0 → payload → w[-1] = n → w[0] = n → H_HEAD = n,
so a reader that sees w[0] == w[-1] == n, and H_HEAD < n + slots afterwards, has a whole record.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from .folder import problem

MAGIC = int.from_bytes(b"GPUMONR1", "little")
VERSION = 1

# Header words.
H_MAGIC = 0
H_VERSION = 1
H_SLOTS = 2
"""Number of slots. Grows in place, only before the first wrap, so record n keeps its slot."""
H_HEAD = 3
"""Records committed so far."""
H_META_SEQ = 4
H_META_LEN = 5
H_PID = 6
H_STATE = 7
H_STARTED_MONO = 8
H_STARTED_WALL = 9
H_ENDED_MONO = 10
H_LIVE = 11
"""The open phase: id in the top byte, CLOCK_MONOTONIC ns of its start below."""
H_DROPPED = 12
"""How many items the writer had to drop (no free device event, …)."""
H_PID_STARTED = 13
"""Process creation time in ns since the epoch where no lock identifies a live writer; else 0."""
H_OVERHEAD = 14
"""ns the monitor itself has spent in the loop so far."""
H_CLOSED = 15
"""Steps whose work is done, committed or not: those a killed writer could not commit count as lost."""
H_REQUESTS = 16
"""Random part of the name of the owner's request folder (`request_folder`), so nobody else can claim that
name first. 0: the writer takes no requests."""
H_SIGNAL = 17
"""The signal that ends the writer, noted by who started it: its parent that terminates it, or `gpumon run`
that saw how it ended. 0: none known."""
HEADER_WORDS = 128

SCALARS_AT = 1024
SCALARS = 128
META_AT = 2048
META_BYTES = 62 * 1024
DATA_AT = META_AT + META_BYTES  # 65,536: a page boundary

# Record words.
W_SEQ = 0
W_BEGIN = 1
"""CLOCK_MONOTONIC ns. Records are contiguous: each ends where the next begins."""
W_END = 2
W_FLAGS = 3
W_EPOCH = 4
W_SAMPLES = 5
W_TOKENS = 6
W_OVERHEAD = 7
W_PHASES = 8
"""16 words: ns per phase id."""
W_DEVICE_SEQ = 24
"""Which record the three device words belong to (device results arrive some steps late); 0: none."""
W_DEVICE_BUSY = 25
W_DEVICE_STARVED = 26
"""ns of the step in which the device worked, and in which it was idle; together, the step as the device saw
it."""
W_DEVICE_LAG = 27
"""ns by which the device trailed the host, averaged over the step's marks."""
W_LOSS = 28
"""float64 bits; NaN when the step had none."""
W_GC = 29
"""ns of Python garbage collection inside the step."""
W_MEMORY = 30
"""Device bytes allocated, when sampled in this step; else 0."""
W_COMMIT = 31
SLOT_WORDS = 32
SLOT_BYTES = SLOT_WORDS * 8

# Flags.
F_WARMUP = 1
"""Compilation, first iterations: excluded from the steady figures."""
F_EPOCH_START = 2
F_COMPILED = 4
"""dynamo compiled something during this step."""
F_NO_UPDATE = 8
"""The step's update was skipped (a gradient scaler found non-finite gradients)."""
F_CAPTURED = 16
"""Ran as a CUDA graph (or was captured): phases inside are not visible."""
F_SAMPLED = 32
"""The SDK sampled or profiled this step: excluded from the steady figures."""

MICRO_BATCHES_SHIFT = 16
MOST_MICRO_BATCHES = 0xFFFF
"""From this bit up, the flags word holds the step's number of micro-batches (gradient accumulation). 0 means
one; larger numbers are capped."""

# Phases. Ids 0–11 are fixed, 12–15 are the user's own, named in meta["phases"].
PHASES = (
    "data",
    "transfer",
    "forward",
    "backward",
    "optimizer",
    "between",
    "validate",
    "checkpoint",
    "log",
    "grad_norm",
    "zero_grad",
    "sync",
)
PHASE_SLOTS = 16
"""Twelve fixed phases and four of the user's."""
LIVE_NONE = 255
"""Phase id in H_LIVE when no named phase is open (time goes to ``other``)."""

# States.
S_RUNNING = 0
S_ENDED = 1
S_FAILED = 2
"""An exception ended the loop."""
S_INTERRUPTED = 3
"""Somebody ended it: Ctrl-C or a termination request."""

KIND_TRAINER = "trainer"
KIND_WORKER = "worker"
"""A DataLoader worker's own ring: one record per batch, with phases `WORKER_PHASES`."""
WORKER_PHASES = ("wait", "fetch", "collate", "send")

SUFFIX = ".ring"
REQUEST, STATE, TRACE = "request.json", "state.json", "trace.json"
"""In a request folder: the owner's request, the writer's answer, and the trace it wrote."""
TAKING, WRITTEN, REFUSED = "taking", "written", "refused"
"""Values of the state; without one, the writer has not seen the request."""
MAX_UNCOMMITTED = 4096
"""No writer can lag by more: a larger value means a broken header."""
INITIAL_SLOTS = 4096
MAX_BYTES = 64 * 1024 * 1024
"""Chosen: a ring starts at 1 MiB and grows up to this until it holds ten minutes."""

_NAN = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]
EMPTY_RECORD = array("Q", [0] * SLOT_WORDS)
EMPTY_RECORD[W_LOSS] = _NAN


def float_bits(value: float) -> int:
    """A float64 as the word that stores it."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def micro_batches(flags: int) -> int:
    """How many micro-batches a step had, from its flags word."""
    return max(1, flags >> MICRO_BATCHES_SHIFT & MOST_MICRO_BATCHES)


def count_micro_batches(flags: Sequence[int]) -> int:
    """Total micro-batches of these steps; in most runs, one each."""
    if max(flags, default=0) < 1 << MICRO_BATCHES_SHIFT:
        return len(flags)
    return sum(map(micro_batches, flags))


def pack_live(phase: int, since_ns: int) -> int:
    return (phase << 56) | (since_ns & 0x00FF_FFFF_FFFF_FFFF)


def unpack_live(word: int) -> tuple[int, int]:
    return word >> 56, word & 0x00FF_FFFF_FFFF_FFFF


def request_folder(path: str, requests: int) -> str:
    """Where the owner of this ring may put a request: a folder beside it that only the owner can enter."""
    return f"{path.removesuffix(SUFFIX)}.{requests:016x}.profile"


def default_directory() -> str:
    """Where rings live: `GPUMON_DIR`, else the service's directory if we may write to it, else the user's
    own."""
    chosen = os.environ.get("GPUMON_DIR")
    if chosen:
        return chosen
    base = "/dev/shm" if sys.platform.startswith("linux") and os.path.isdir("/dev/shm") else None
    if base is None:
        import tempfile

        base = tempfile.gettempdir()
    shared = os.path.join(base, "gpumon")
    if os.path.isdir(shared) and os.access(shared, os.W_OK | os.X_OK) and problem(shared) is None:
        return shared
    uid = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    return os.path.join(base, f"gpumon-{uid}")


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────


class RingError(ValueError):
    """This version cannot read the file as a ring; the message says why."""


class Header(NamedTuple):
    """A ring's header, validated."""

    slots: int
    head: int
    state: int
    pid: int
    started_mono_ns: int
    started_wall_ns: int
    ended_mono_ns: int
    live_phase: int
    live_since_ns: int
    meta_seq: int
    dropped: int
    pid_started: int
    overhead_ns: int
    closed: int
    requests: int
    signal: int = 0


def _exactly(fd: int, count: int, at: int) -> bytes:
    """`pread` that raises `RingError` on a short read: somebody truncated the file."""
    if hasattr(os, "pread"):
        raw = os.pread(fd, count, at)
    else:  # Windows; threads never share descriptors here
        os.lseek(fd, at, os.SEEK_SET)
        raw = os.read(fd, count)
    if len(raw) < count:
        raise RingError("file is truncated")
    return raw


def read_header(fd: int, size: int) -> Header:
    """Header of an open ring of `size` bytes. Raises `RingError` on anything inconsistent."""
    words = struct.unpack(f"<{HEADER_WORDS}Q", _exactly(fd, HEADER_WORDS * 8, 0))
    if words[H_MAGIC] != MAGIC:
        raise RingError("not a ring file (wrong magic number)")
    if words[H_VERSION] != VERSION:
        raise RingError(f"the ring has version {words[H_VERSION]}, but this gpumon reads version {VERSION}")
    slots = words[H_SLOTS]
    if not 0 < slots <= (size - DATA_AT) // SLOT_BYTES:
        raise RingError(f"{slots} slots do not fit a file of {size} bytes")
    if words[H_STATE] > S_INTERRUPTED or not 0 < words[H_PID] < 1 << 31:
        raise RingError("header words out of range")
    phase, since = unpack_live(words[H_LIVE])
    return Header(
        slots=slots,
        head=words[H_HEAD],
        state=words[H_STATE],
        pid=words[H_PID],
        started_mono_ns=words[H_STARTED_MONO],
        started_wall_ns=words[H_STARTED_WALL],
        ended_mono_ns=words[H_ENDED_MONO],
        live_phase=phase,
        live_since_ns=since,
        meta_seq=words[H_META_SEQ],
        dropped=words[H_DROPPED],
        pid_started=words[H_PID_STARTED],
        overhead_ns=words[H_OVERHEAD],
        closed=min(words[H_CLOSED], words[H_HEAD] + MAX_UNCOMMITTED),
        requests=words[H_REQUESTS],
        signal=words[H_SIGNAL],
    )


def read_meta(fd: int) -> dict[str, Any] | None:
    """The meta JSON, or None while the writer is changing it. Raises `RingError` if it is invalid."""
    head = struct.unpack("<2Q", _exactly(fd, 16, H_META_SEQ * 8))
    if head[0] % 2 or head[1] > META_BYTES:
        return None
    raw = _exactly(fd, head[1], META_AT)
    again = struct.unpack("<2Q", _exactly(fd, 16, H_META_SEQ * 8))
    if again != head:
        return None
    try:
        meta = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise RingError(f"meta is not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise RingError("meta is not a JSON object")
    return meta


def read_scalars(fd: int) -> tuple[float, ...]:
    return struct.unpack(f"<{SCALARS}d", _exactly(fd, SCALARS * 8, SCALARS_AT))


class Block:
    """Consecutive whole records; record `first` starts at word 0 of `raw`. (Not a dataclass: importing
    `dataclasses` costs a training script more than the rest of the SDK.)"""

    __slots__ = ("count", "cursor", "first", "lost", "raw")

    def __init__(self, first: int, count: int, raw: memoryview, cursor: int, lost: int) -> None:
        self.first = first
        self.count = count
        self.raw = raw
        """`count` × `SLOT_BYTES` bytes; cast to "Q" (words) or "d" (floats)."""
        self.cursor = cursor
        """Number of the last record accounted for, read or lost."""
        self.lost = lost


def read_block(fd: int, header: Header, after: int, limit: int) -> Block:
    """Records after number `after`, oldest first, as one block to be read column by column.

    Exact: cursor == after + count + lost. A record the writer overwrites while we read it counts as
    lost. A slot not yet visible (weak memory order) is left for the next call.
    """
    first = max(after + 1, header.head - header.slots + 1)
    last = min(header.head, first + limit - 1)
    if last < first:
        return Block(first, 0, memoryview(b""), first - 1, first - after - 1)
    raw = memoryview(_read_slots(fd, header, first, last))
    whole = min(max(first, _oldest_whole(fd, header)), last + 1)
    raw = raw[(whole - first) * SLOT_BYTES :]
    count = _whole_records(raw.cast("Q"), whole)
    cursor = whole + count - 1
    return Block(whole, count, raw[: count * SLOT_BYTES], cursor, cursor - after - count)


def _whole_records(words: memoryview, first: int) -> int:
    """How many records, from the start, carry their own number at both ends."""
    numbers = list(range(first, first + len(words) // SLOT_WORDS))
    begins, commits = words[W_SEQ::SLOT_WORDS].tolist(), words[W_COMMIT::SLOT_WORDS].tolist()
    if begins == numbers and commits == numbers:
        return len(numbers)
    pairs = zip(begins, commits, numbers, strict=True)
    return next((at for at, (a, b, n) in enumerate(pairs) if not a == b == n), len(numbers))


def _oldest_whole(fd: int, header: Header) -> int:
    """Number of the oldest record the writer cannot have touched yet.

    It may already be filling record head + 1, whose slot held record head + 1 - slots. It clears
    w[0] first, so that word tells whether it has begun.
    """
    now: int = struct.unpack("<Q", _exactly(fd, 8, H_HEAD * 8))[0]
    next_victim = now + 1 - header.slots
    if next_victim < 1:
        return 1
    at = DATA_AT + (next_victim - 1) % header.slots * SLOT_BYTES
    untouched = struct.unpack("<Q", _exactly(fd, 8, at))[0] == next_victim
    return next_victim if untouched else next_victim + 1


def _read_slots(fd: int, header: Header, first: int, last: int) -> bytes:
    """Raw bytes of records first…last (at most one wrap)."""
    begin, count = (first - 1) % header.slots, last - first + 1
    straight = min(count, header.slots - begin)
    raw = _exactly(fd, straight * SLOT_BYTES, DATA_AT + begin * SLOT_BYTES)
    if count > straight:
        raw += _exactly(fd, (count - straight) * SLOT_BYTES, DATA_AT)
    return raw
