"""The daemon's log: to stderr, without repeating a line thousands of times."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections import OrderedDict
from typing import ClassVar

REPEAT_SECONDS = 60.0
REMEMBERED = 256
"""Chosen: a repeated line is logged once a minute; this many different ones are remembered."""
CROWDED = ("asyncio", "uvicorn.error")
"""Loggers that clients can flood: with garbage requests, or by using up the file descriptors."""


def set_up_logging(verbose: bool) -> None:
    """Logs to stderr; under systemd with its priority prefix and without the time, which the journal adds."""
    journal = "JOURNAL_STREAM" in os.environ
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JournalFormatter() if journal else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    for name in CROWDED:
        logging.getLogger(name).addFilter(Repeats())


class _JournalFormatter(logging.Formatter):
    PRIORITIES: ClassVar = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}

    def format(self, record: logging.LogRecord) -> str:
        return f"<{self.PRIORITIES.get(record.levelname, 6)}>{super().format(record)}"


class Repeats(logging.Filter):
    """Lets a line through once a minute, adding how often it was suppressed in between."""

    def __init__(self) -> None:
        super().__init__()
        self._last: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """Line → when it was last let through, and how many were suppressed since."""

    def filter(self, record: logging.LogRecord) -> bool:
        line = record.getMessage().partition("\n")[0]
        when, held = self._last.get(line, (float("-inf"), 0))
        now = time.monotonic()
        if now - when < REPEAT_SECONDS:
            self._last[line] = (when, held + 1)
            return False
        self._last[line] = (now, 0)
        self._last.move_to_end(line)
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        if held:
            record.msg, record.args = f"{line} ({held} more like it since the last)", ()
        return True
