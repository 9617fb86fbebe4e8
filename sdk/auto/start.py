"""Starting automatic instrumentation: at once if torch is imported, else as soon as it is."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from ..compiler.tracing import find_torch
from ..loop.recorder import NEVER
from ..loop.session import Session
from ..loop.warn import warn_once
from ..writer import watch_children
from . import registry
from ._setup import SetUp
from .import_hook import when_imported

TRIAL = "GPUMON_TRIAL"
"""Set in a process that is part of an experiment."""


def start_auto(monitor_class: Any, name: str | None, explore: bool = False) -> Any:
    """The auto monitor of this process; created, started and hooked the first time."""
    running = registry.auto()
    monitor = running.monitor if running is not None else _start(monitor_class, name)
    if explore and TRIAL not in os.environ and monitor.recorder.on:
        _explore(monitor.session)
    return monitor


def _start(monitor_class: Any, name: str | None) -> Any:
    monitor = monitor_class(name, mode="auto")
    monitor.start_monitoring()
    when_imported("multiprocessing.popen_fork", watch_children)
    session = monitor.session
    if isinstance(session, Session):
        if TRIAL in os.environ:
            from ..knobs.trial import start_trial

            start_trial(session)
        setup = SetUp(session.began)
        session.when_stopped(setup.remove)
        session.when_stopped(when_imported("torch", lambda torch: _hook(monitor, session, torch, setup)))
    return monitor


def _explore(session: Any) -> None:
    """Once per process. The session may come from the package's other copy; see `registry`."""
    from ..explore.start import NAME, explore

    def begin(torch: ModuleType) -> None:
        try:
            explore(torch, session, lambda: session.recorder.steps)
        except (AttributeError, ImportError) as error:
            warn_once(f"cannot explore settings with this version of torch: {error}")

    if NAME not in session.config:
        when_imported("torch", begin)


def _hook(monitor: Any, session: Session, torch: ModuleType, setup: SetUp) -> None:
    """Install the hooks in torch. A torch that lacks one of the hooked functions is left alone."""
    from ._recognizer import StepRecognizer
    from .hooks import install

    find_torch()
    session.probe.watch_torch()
    recognizer = StepRecognizer(session, torch, setup)
    try:
        session.when_stopped(*install(recognizer, torch))
        setup.watch(torch)
    except (AttributeError, ImportError) as error:
        recognizer.on = False
        setup.remove()
        warn_once(f"cannot instrument this version of torch automatically: {error}")
        return
    limit = os.environ.get("GPUMON_MAX_STEPS", "")
    session.recorder.limit = (int(limit) if limit.isdigit() else 0) or NEVER
    recognizer.monitor = monitor
    session.before_stop = recognizer.finish
    session.when_stopped(recognizer.switch_off)
    registry.set_auto(recognizer)
