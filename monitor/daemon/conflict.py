"""The error of a daemon that starts while another is running."""

from __future__ import annotations

from monitor.host.listeners import Owner
from monitor.model.errors import EXIT_CONFLICT, UserError


def in_use(what: str, who: Owner | None) -> UserError:
    """Something a daemon needs exclusively is in use; names the holder if known."""
    if who is None:
        name = "another process"
    else:
        name = f"{'another gpumon daemon' if who.is_daemon else f'the program {who.name}'} (pid {who.pid})"
    return UserError(
        f"{what} is in use by {name}",
        hint="stop it, or give this one its own --listen, --socket and --dir",
        code=EXIT_CONFLICT,
    )
