"""Checks of how the daemon is reached: port, Unix socket, and whether one answers."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from pathlib import Path

from monitor import __version__
from monitor.client import Client
from monitor.doctor.check import Context, Result, check, failed, passed, skipped, warned
from monitor.doctor.storage import try_to_write
from monitor.host.listeners import is_loopback, port_owner
from monitor.model.errors import UserError
from monitor.model.snapshot import Snapshot
from monitor.model.units import duration

SOCKET_PATH_BYTES = 107
"""The limit of the kernel's address structure."""
CLOCK_SKEW_SECONDS = 10.0
"""The daemon may be on another machine with a different clock."""


@check("port", "the daemon's TCP address is free, or a gpumon daemon has it")
def port(context: Context) -> Result:
    listen = context.settings.listen
    if listen is None:
        return skipped("no TCP (listen: none)")
    host, _, number = listen.rpartition(":")
    host = host.strip("[]")
    error = try_to_bind(host, int(number))
    if error is None:
        return _exposed(context, host, listen) or passed(f"{listen} is free", listen=listen)
    return _taken(host, listen, error)


def _taken(host: str, listen: str, error: OSError) -> Result:
    if error.errno != errno.EADDRINUSE:
        remedy = "choose an address of this machine and a port above 1023"
        return failed(f"cannot listen on {listen}: {error.strerror or error}", remedy, listen=listen)
    number = listen.rpartition(":")[2]
    owner = port_owner(int(number))
    if (owner and owner.is_daemon) or _is_gpumon(f"http://{_reachable(host)}:{number}"):
        return passed(f"a gpumon daemon serves {listen}", listen=listen, daemon=True)
    who = f"process {owner.pid} ({owner.name})" if owner else "another program"
    return failed(
        f"{listen} is in use by {who}, which is not a gpumon daemon",
        "choose another port: gpumon daemon --listen 127.0.0.1:9836",
        listen=listen,
        pid=owner.pid if owner else None,
    )


def _exposed(context: Context, host: str, listen: str) -> Result | None:
    """Outside loopback and without a web-config file, everybody on the network can read it."""
    if is_loopback(host) or context.settings.web_config is not None or context.settings.insecure:
        return None
    return warned(
        f"{listen} is open to the network without TLS or password",
        "listen on 127.0.0.1, or give --web-config with TLS and basic auth",
        listen=listen,
    )


def try_to_bind(host: str, number: int) -> OSError | None:
    """Bind and release at once. None: success."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if os.name == "posix":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, number))
            probe.listen(1)
        except OSError as error:
            return error
    return None


@check("socket", "the daemon's Unix socket")
def unix_socket(context: Context) -> Result:
    path = context.settings.socket
    if path is None or not hasattr(socket, "AF_UNIX"):
        return skipped("no Unix socket (socket: none)")
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        return failed(
            f"{path} is longer than a socket's path may be ({SOCKET_PATH_BYTES} bytes)",
            "choose a shorter --socket",
        )
    if path.exists():
        return _existing_socket(path)
    home = next(above for above in path.parents if above.exists())
    error = try_to_write(home) if home.is_dir() else f"{home} is not a directory"
    if error:
        return failed(
            f"{path} cannot be created: {error}", "choose another place with --socket, or --socket none"
        )
    return passed(f"{path} can be created", path=str(path))


def _existing_socket(path: Path) -> Result:
    if not stat.S_ISSOCK(path.stat().st_mode):
        return failed(f"{path} exists and is not a socket", "move it away, or choose another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(str(path))
        except PermissionError:
            return warned(f"no permission for {path}", "join the group that owns it (often gpumon)")
        except OSError as error:
            return warned(
                f"{path} is left over: {error.strerror or error}",
                f"the next daemon replaces it; or rm {path}",
            )
    return passed(f"a daemon listens on {path}", path=str(path), daemon=True)


@check("daemon", "a daemon answers with fresh data, in our version")
def daemon(context: Context) -> Result:
    answer = context.snapshot
    if isinstance(answer, UserError):
        remedy = answer.hint or "start one with: gpumon daemon"
        if context.connect:
            return failed(answer.sentence, remedy)
        return warned(f"{answer.sentence}: commands take their own readings", remedy)
    return _stale(answer) or _troubled(answer) or _daemon_passed(answer)


def _stale(snapshot: Snapshot) -> Result | None:
    age = time.time() - snapshot.time
    if age > max(CLOCK_SKEW_SECONDS, snapshot.stale_after_seconds):
        return failed(
            f"the daemon's data is {duration(age)} old",
            "restart it; its log says what it waits for",
            age_seconds=age,
        )
    if snapshot.version and snapshot.version != __version__:
        return warned(
            f"the daemon is gpumon {snapshot.version}, this command {__version__}",
            "restart the daemon after an upgrade",
        )
    return None


def _troubled(snapshot: Snapshot) -> Result | None:
    broken = [f"{part.name} ({part.error})" for part in snapshot.collectors if not part.ok]
    if broken:
        return warned(f"collectors fail: {', '.join(broken)}", "the daemon's log has the details")
    lost = [f"GPU {gpu.index} is {gpu.state}" for gpu in snapshot.gpus if gpu.state != "ok"]
    if lost:
        return warned("; ".join(lost), "nvidia-smi and dmesg show why; gpumon continues with the others")
    return None


def _daemon_passed(snapshot: Snapshot) -> Result:
    simulated = " (simulated)" if snapshot.source.kind == "simulated" else ""
    return passed(
        f"answers: {len(snapshot.gpus)} GPU(s){simulated}, {len(snapshot.runs)} run(s)",
        gpus=len(snapshot.gpus),
        runs=len(snapshot.runs),
        source=snapshot.source.kind,
    )


def _is_gpumon(url: str) -> bool:
    try:
        with Client(url, timeout=2.0) as client:
            client.snapshot()
    except UserError:
        return False
    return True


def _reachable(host: str) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"[{shown}]" if ":" in shown else shown
