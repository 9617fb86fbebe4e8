"""Warns at start-up about a port that others can reach without a password or TLS."""

from __future__ import annotations

import logging

from monitor.host.listeners import is_loopback
from monitor.model.settings import Settings
from monitor.web.webconfig import WebConfig

log = logging.getLogger("gpumon")


def warn_if_exposed(settings: Settings, web: WebConfig) -> None:
    """Does nothing if the user passed --insecure."""
    missing = what_is_missing(settings.listen, web)
    if missing and not settings.insecure:
        log.warning(
            "ANYBODY WHO REACHES THIS MACHINE CAN READ %s: it is served without %s. Listen on 127.0.0.1, "
            "give --web-config with TLS and users, or pass --insecure if something else protects it",
            settings.listen,
            missing,
        )


def what_is_missing(listen: str | None, web: WebConfig) -> str | None:
    """What protection the port lacks, if others can reach it; None if nothing."""
    if listen is None or is_loopback(listen.rpartition(":")[0].strip("[]")):
        return None
    missing = [] if web.identifies_clients else ["a password"]
    missing += [] if web.tls else ["TLS"]
    return " and without ".join(missing) or None
