"""Prepared machines for the checks, and what a complaint must have."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from monitor.doctor import gpu
from monitor.doctor.check import Context, Result
from monitor.doctor.probes import NvmlAnswer

NO_LIBRARY = NvmlAnswer(error="NVML Shared Library Not Found", code=gpu.LIBRARY_NOT_FOUND)
TWO_GPUS = NvmlAnswer(
    driver="570.1", cuda="12.8", gpus=({"index": 0, "name": "H"}, {"index": 1, "name": "H"})
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def with_settings(context: Context, **changed: Any) -> Context:
    return dataclasses.replace(context, settings=dataclasses.replace(context.settings, **changed))


def complains(result: Result, status: str, words: str) -> None:
    assert result.status == status, result
    assert re.search(words, result.detail), result.detail
    assert result.remedy
