"""How a command shows what parts of it log: as all else it says on stderr. The daemon has its own log."""

from __future__ import annotations

import logging


def log_plainly() -> None:
    """For a process that has set up no log."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(logging.Formatter("gpumon: %(message)s"))
