"""What a trace file must have for Perfetto (Chrome's trace event format) and Holistic Trace Analysis.

From the format: an object with `traceEvents`; complete events ("X") with name, process, thread, begin and
length in microseconds; on one thread they are nested or apart, or a viewer drops some.
From HTA's parser: a category for every event it keeps; device work with `device`, `stream` and `correlation`,
and for each correlation one call on the host; of a distributed job, the rank in `distributedInfo`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
ROUNDING_US = 0.002
"""Times are written in thousandths of a microsecond."""


def problems(path: Path, rank: int | None = None) -> list[str]:
    """Everything that is wrong with the file; `rank`: of a distributed job."""
    raw = path.read_bytes()
    trace = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    whole = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    found = [*_fields(whole), *_links(whole), *_nesting(whole)]
    if rank is not None and trace.get("distributedInfo", {}).get("rank") != rank:
        found.append(f"distributedInfo has no rank {rank}")
    return found


def _fields(whole: list[dict[str, Any]]) -> Iterator[str]:
    for event in whole:
        if missing := [key for key in ("name", "cat", "pid", "tid", "ts", "dur") if key not in event]:
            yield f"{event.get('name')}: no {', '.join(missing)}"
        elif not event["name"] or float(event["ts"]) < 0 or float(event["dur"]) < 0:
            yield f"{event}: no name, or a negative time"
    for event in _on_device(whole):
        if missing := [key for key in ("device", "stream", "correlation") if key not in event["args"]]:
            yield f"{event['name']}: no {', '.join(missing)}"


def _links(whole: list[dict[str, Any]]) -> Iterator[str]:
    calls = {one["args"]["correlation"]: one for one in whole if _is_call(one)}
    if len(calls) != sum(map(_is_call, whole)):
        yield "several calls with one correlation"
    for event in _on_device(whole):
        call = calls.get(event["args"].get("correlation"))
        if call is None or float(call["ts"]) > float(event["ts"]) + ROUNDING_US:
            yield f"{event['name']}: no call before it launched it"


def _nesting(whole: list[dict[str, Any]]) -> Iterator[str]:
    lanes: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for event in whole:
        if event.get("cat") != "Trace":
            lanes.setdefault((event["pid"], event["tid"]), []).append(event)
    for lane in lanes.values():
        open_until: list[float] = []
        for event in sorted(lane, key=lambda one: (float(one["ts"]), -float(one["dur"]))):
            begin, end = float(event["ts"]), float(event["ts"]) + float(event["dur"])
            while open_until and open_until[-1] <= begin + ROUNDING_US:
                open_until.pop()
            if open_until and end > open_until[-1] + ROUNDING_US:
                yield f"{event['name']} overlaps another event of its thread"
            open_until.append(end)


def _on_device(whole: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in whole if event.get("cat") in ON_DEVICE]


def _is_call(event: dict[str, Any]) -> bool:
    return event.get("cat") in CALLS and "correlation" in event.get("args", {})
