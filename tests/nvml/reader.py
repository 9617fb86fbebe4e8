"""A child process that reads the NVML source on request: pynvml finds the stand-in only at start.

Each line on stdin is a command: `read` answers one JSON line with the source, the GPUs and how long
the reading took; `close` closes the source, answers how long that took, and ends.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec

from monitor.gpu.nvml import NvmlSource
from monitor.model.clock import Moment


def main() -> int:
    options = msgspec.json.decode(sys.argv[1])
    if "listing" in options:
        options["listing"] = Path(options["listing"])
    source = NvmlSource(**options)
    for line in sys.stdin:
        began = time.monotonic()
        if line.strip() == "close":
            source.close()
            _answer({"seconds": time.monotonic() - began})
            return 0
        readings = source.read(Moment.now(), None)
        seconds = time.monotonic() - began
        _answer({"source": readings.source, "gpus": readings.gpus, "seconds": seconds})
    return 0


def _answer(value: object) -> None:
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
