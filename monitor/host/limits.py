"""Limits of the daemon's own process."""

from __future__ import annotations

import logging

log = logging.getLogger("gpumon.host")


def raise_descriptor_limit() -> int | None:
    """Let this process open as many files as allowed: every ring in view is an open file, and the usual soft
    limit of 1,024 is meant for programs that use select(). Returns the limit now in force; None: unknown.

    For the daemon only: a command's children would inherit it."""
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        log.warning("at most %d open files: the limit cannot be raised to %d (%s)", soft, hard, error)
        return soft
    if soft != hard:
        log.info("open-file limit is now %d (was %d)", hard, soft)
    return hard
