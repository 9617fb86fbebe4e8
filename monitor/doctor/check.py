"""What a check is: a small function from a `Context` to a `Result`, registered under a stable id."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from monitor.host.procfs import Roots
from monitor.model.errors import UserError

if TYPE_CHECKING:
    from monitor.doctor.probes import NvmlAnswer
    from monitor.model.settings import Settings
    from monitor.model.snapshot import Snapshot

MODULES = ("software", "names", "gpu", "storage", "service", "machine", "calibration")
"""The modules with checks, in display order."""

Status = Literal["PASS", "WARN", "FAIL", "SKIP"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found. Warnings and failures always say what to do."""

    status: Status
    detail: str
    remedy: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def passed(detail: str, **facts: Any) -> Result:
    return Result("PASS", detail, None, facts)


def skipped(detail: str, **facts: Any) -> Result:
    return Result("SKIP", detail, None, facts)


def warned(detail: str, remedy: str, **facts: Any) -> Result:
    return Result("WARN", detail, remedy, facts)


def failed(detail: str, remedy: str, **facts: Any) -> Result:
    return Result("FAIL", detail, remedy, facts)


@dataclass
class Context:
    """What checks look at. Slow answers are obtained once and shared between checks."""

    settings: Settings
    connect: str | None = None
    deep: bool = False
    calibrate: bool = False
    """Measure what work costs, instead of showing the last measurement."""
    python: str | None = None
    """The interpreter that trains; None: ours."""
    roots: Roots = field(default_factory=Roots)

    @cached_property
    def nvml(self) -> NvmlAnswer:
        from monitor.doctor.probes import ask_nvml

        return ask_nvml()

    @cached_property
    def snapshot(self) -> Snapshot | UserError:
        """The daemon's newest snapshot, or why there is none."""
        from monitor.client import Client

        try:
            with Client(self.daemon_url(), timeout=2.0) as client:
                return client.snapshot()
        except UserError as error:
            return error

    def daemon_url(self) -> str | None:
        """The daemon the options refer to: socket before port, as in every command."""
        chosen = self.connect or os.environ.get("GPUMON_CONNECT")
        if chosen:
            return chosen
        if self.settings.socket is not None and self.settings.socket.exists():
            return f"unix:{self.settings.socket}"
        return self.settings.listen and "http://" + self.settings.listen.replace("0.0.0.0:", "127.0.0.1:")


@dataclass(frozen=True, slots=True)
class Check:
    id: str
    title: str
    """What is checked, for people and for the table in docs/doctor.md."""
    run: Callable[[Context], Result]


_registry: dict[str, Check] = {}


def check(id: str, title: str) -> Callable[[Callable[[Context], Result]], Callable[[Context], Result]]:
    """Register a check. Scripts rely on the ids: never rename one."""

    def register(function: Callable[[Context], Result]) -> Callable[[Context], Result]:
        if id in _registry:
            raise ValueError(f"two checks with the id {id!r}")
        _registry[id] = Check(id, title, function)
        return function

    return register


def all_checks() -> tuple[Check, ...]:
    """Every check, in display order."""
    for name in MODULES:
        importlib.import_module(f"monitor.doctor.{name}")
    return tuple(sorted(_registry.values(), key=_place))


def _place(item: Check) -> int:
    """By module; within a module as written, because sorting is stable."""
    return MODULES.index(item.run.__module__.rpartition(".")[2])


def run_check(item: Check, context: Context) -> Result:
    """Run one check; if the machine refuses to be examined, that is an answer, not a crash."""
    try:
        return item.run(context)
    except (OSError, ValueError) as error:
        return warned(f"could not be checked: {error}", "run gpumon doctor as the user who runs the daemon")
