"""Reads a chrome trace as Kineto writes it, plain or compressed, into a `Trace`.

The whole file is decoded at once into typed records that hold only the fields used here: several times faster
than building dictionaries, in a fraction of the memory.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from monitor.model.errors import UserError
from monitor.model.files import check_ends
from monitor.traces.trace import Call, Card, Range, RangeKind, Thread, Trace, Work, WorkKind

GZIP_MAGIC = b"\x1f\x8b"
NS_PER_US = 1000
"""Chrome traces are in microseconds."""

WORK = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
RANGES: dict[str, RangeKind] = {
    "cpu_op": "op",
    "Operator": "op",
    "user_annotation": "annotation",
    "python_function": "python",
}
CALL_SUFFIXES = ("_runtime", "_driver")
"""cuda_runtime, cuda_driver, xpu_runtime, privateuse1_runtime …; ROCm traces also say cuda_runtime."""
OLD_CALLS = "Runtime"

COLLECTIVE = re.compile(r"^(nccl|rccl).*kernel|(one|two)_shot_all_?reduce|multimem_.*(reduce|gather)", re.I)
"""Kernels of NCCL and RCCL, and torch's own on symmetric memory."""
NOT_JSON_NUMBERS = re.compile(rb":\s*-?(?:nan|inf(?:inity)?)\b", re.I)
RANK_IN_NAME = re.compile(r"rank[-_.]?(\d+)", re.I)


class _Args(Struct, gc=False):
    """The arguments we use, of any type: ROCm writes numbers as text."""

    correlation: Any = None
    device: Any = None
    stream: Any = None
    bytes: Any = None
    size: Any = None
    stack: Any = msgspec.field(name="Call stack", default=None)


class _Event(Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Any = 0
    tid: Any = 0
    ts: float = 0.0
    dur: float = 0.0
    args: _Args | None = None


class _Distributed(Struct):
    rank: Any = None
    world_size: Any = None


class _Device(Struct, rename="camel"):
    id: Any = None
    name: str = ""
    compute_major: Any = None
    total_global_mem: Any = None


class _File(Struct, rename="camel"):
    trace_events: list[_Event]
    device_properties: list[_Device] = []
    distributed_info: _Distributed | None = None


_decoder: msgspec.json.Decoder[_File | list[_Event]] = msgspec.json.Decoder(
    _File | list[_Event], strict=False
)


def read(path: str | Path) -> Trace:
    """Reads a trace file; any problem with it becomes a one-sentence error."""
    return parse(_content(Path(path)), str(path))


def parse(data: bytes, source: str) -> Trace:
    """A trace already in memory; `source` is its name in messages."""
    file = _decoded(data, source)
    if isinstance(file, list):
        file = _File(file)
    if not file.trace_events:
        raise UserError(f"{source} has no events in it")
    return _trace(file, source)


def _content(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            check_ends(file, path)
            data = file.read()
    except IsADirectoryError:
        raise UserError(f"{path} is a directory", hint="name the trace files, one per rank") from None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    if not data:
        raise UserError(f"{path} is empty")
    return _unpacked(data, path) if data.startswith(GZIP_MAGIC) else data


def _unpacked(data: bytes, path: Path) -> bytes:
    try:
        return gzip.decompress(data)
    except EOFError:
        raise UserError(f"{path} is cut off: its compressed data ends too early") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is damaged: {error}") from error


def _decoded(data: bytes, source: str) -> _File | list[_Event]:
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError as error:
        raise UserError(f"{source} is not a profiler trace: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _repaired(data, source, error)


def _repaired(data: bytes, source: str, error: ValueError | msgspec.DecodeError) -> _File | list[_Event]:
    """Retry without common profiler mistakes: bare nan and inf, and text that is not UTF-8."""
    mended = NOT_JSON_NUMBERS.sub(b":null", data).decode("utf-8", "replace").encode()
    try:
        return _decoder.decode(mended)
    except msgspec.MsgspecError:
        raise UserError(f"{source} is not valid JSON: {error}") from error


def _trace(file: _File, source: str) -> Trace:
    events = [event for event in file.trace_events if event.ph == "X"]
    if not events:
        raise UserError(f"{source} is not a profiler trace: none of its events has a duration")
    calls, work, ranges = _sorted_out(events)
    info = file.distributed_info or _Distributed()
    return Trace(
        source=source,
        work=work,
        calls=calls,
        ranges=ranges,
        cards=tuple(_card(one) for one in file.device_properties),
        rank=_first(_number(info.rank), _rank_in(source)),
        world_size=_number(info.world_size),
        events=len(file.trace_events),
    )


def _sorted_out(events: list[_Event]) -> tuple[tuple[Call, ...], tuple[Work, ...], tuple[Range, ...]]:
    groups: dict[str, list[_Event]] = {"work": [], "call": [], "range": [], "": []}
    room = {cat: groups[_group(cat)] for cat in {event.cat for event in events}}
    for event in events:
        room[event.cat].append(event)
    origin = min((event.ts for group in ("work", "call", "range") for event in groups[group]), default=0.0)
    clock = _Clock(origin)
    calls, by_correlation = _calls(groups["call"], clock)
    work = _work(groups["work"], clock, by_correlation)
    return calls, work, tuple(_ranges(groups["range"], clock))


def _group(category: str) -> str:
    if category in WORK:
        return "work"
    if category in RANGES:
        return "range"
    return "call" if category.endswith(CALL_SUFFIXES) or category == OLD_CALLS else ""


class _Clock:
    """Converts a trace's microseconds to whole nanoseconds since its first event, so that sums are exact."""

    def __init__(self, origin: float) -> None:
        self.origin = origin

    def interval(self, event: _Event) -> tuple[int, int]:
        begin = round((event.ts - self.origin) * NS_PER_US)
        return begin, begin + max(0, round(event.dur * NS_PER_US))


_Launches = dict[Any, tuple[Call, _Args]]


def _calls(events: list[_Event], clock: _Clock) -> tuple[tuple[Call, ...], _Launches]:
    calls: list[Call] = []
    launches: _Launches = {}
    for event in events:
        call = Call(*clock.interval(event), event.name, (event.pid, event.tid))
        calls.append(call)
        if event.args is not None and event.args.correlation:
            launches.setdefault(event.args.correlation, (call, event.args))
    calls.sort(key=lambda call: call.begin)
    return tuple(calls), launches


def _work(events: list[_Event], clock: _Clock, launches: _Launches) -> tuple[Work, ...]:
    names: dict[str, tuple[str, WorkKind]] = {}
    found = []
    for event in events:
        if event.name not in names:
            names[event.name] = (event.name, _kind(event))
        args = event.args or _Args()
        call, given = launches.get(args.correlation, (None, args))
        size = _first(_number(args.bytes), _number(given.size))
        place = _place(event, args)
        found.append(Work(*clock.interval(event), *names[event.name], *place, size, call))
    found.sort(key=lambda work: work.begin)
    return tuple(found)


def _kind(event: _Event) -> WorkKind:
    if event.cat.lower() != "kernel":
        return "memory"
    return "communication" if COLLECTIVE.search(event.name) else "compute"


def _place(event: _Event, args: _Args) -> tuple[int, int]:
    """Device and stream; for device work, the trace's process and thread are just these."""
    device = _first(_number(args.device), _number(event.pid))
    stream = _first(_number(args.stream), _number(event.tid))
    return device or 0, stream or 0


def _ranges(events: list[_Event], clock: _Clock) -> Iterable[Range]:
    threads: dict[Thread, Thread] = {}
    names: dict[str, str] = {}
    for event in events:
        thread = threads.setdefault((event.pid, event.tid), (event.pid, event.tid))
        name = names.setdefault(event.name, event.name)
        stack = event.args.stack if event.args is not None and isinstance(event.args.stack, str) else ""
        yield Range(*clock.interval(event), name, RANGES[event.cat], thread, stack)


def _card(device: _Device) -> Card:
    return Card(
        _number(device.id) or 0, device.name, _number(device.compute_major), _number(device.total_global_mem)
    )


def _rank_in(source: str) -> int | None:
    found = RANK_IN_NAME.search(Path(source).name)
    return int(found.group(1)) if found else None


def _number(value: Any) -> int | None:
    """An integer from whatever the trace holds in its place; None for anything else."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else None
    return int(value) if isinstance(value, int | float) else None


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one
