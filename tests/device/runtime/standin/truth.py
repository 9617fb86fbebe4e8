"""What really happened: NVML readings meanwhile; `truth-<pid>.json` and `trace-<pid>.json` at the end."""

import atexit
import itertools
import json
import os
from pathlib import Path
from typing import Any

WARM_STEPS = 5
TRACE_LIMIT = 200_000
"""Pieces of work per device in a trace file; the last ones are kept."""


def tell(torch: Any, native: Any) -> None:
    folder = os.environ.get("GPUMON_STANDIN_OUT")
    owner = os.getpid()

    if control := os.environ.get("GPUMON_NVML_CONTROL"):
        native.start_feed(control)

    def finish() -> None:
        native.stop_feed()
        if folder and os.getpid() == owner and native.used():
            write(native, Path(folder), torch.cuda.device_count())

    atexit.register(finish)


def write(native: Any, folder: Path, devices: int) -> None:
    """Also on demand: `standin.truth.write(sys.modules["gpumon_standin"], folder, 1)`."""
    left_out = native.write_trace(str(folder / f"trace-{os.getpid()}.json"), TRACE_LIMIT)
    truth = {
        "stand_in": True,
        "pid": os.getpid(),
        "speeds": json.loads(os.environ["GPUMON_STANDIN_SPEEDS"]),
        "devices": [_device(native, index) for index in range(devices) if native.activity(index)],
        "trace_left_out": left_out,
    }
    path = folder / f"truth-{os.getpid()}.json"
    path.with_suffix(".tmp").write_text(json.dumps(truth))
    path.with_suffix(".tmp").rename(path)


def _device(native: Any, index: int) -> dict[str, Any]:
    marks = native.step_marks()
    windows = [native.activity(index)]
    if len(marks) > 1:
        windows += [_steady(native, index, marks), *itertools.pairwise(marks)]
    whole, *rest = native.accounts(index, windows)
    stats = native.memory_stats(index)
    return {
        "index": index,
        "whole": whole,  # from the first kernel to the end of all work
        "steady": rest[0] if rest else None,
        "steps": rest[1:],  # host time from one optimizer step to the next
        "memory_peak": stats["allocated_bytes"]["all"]["peak"],
    }


def _steady(native: Any, index: int, marks: list[int]) -> tuple[int, int]:
    """From when the device is done with the first steps until it is done with the last one: exactly the work
    of the steps in between, however far the host runs ahead."""
    warm = marks[min(WARM_STEPS, len(marks) // 4)]
    return native.done_with(index, warm), native.done_with(index, marks[-1])
