"""The run did not end normally.

Looks at: the state its ring was left in: failed by an exception, or killed; the signal, if
    `gpumon run` saw it.
Why: The last phase and the memory at the end tell an out-of-memory kill from a crash in the model.
Remedy: depends on the phase and the memory.
Gain: none.
"""

from __future__ import annotations

from monitor.advice.context.run import RunContext
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.phase_names import moment

OUT_OF_MEMORY = ("OutOfMemoryError", "MemoryError")
"""Exceptions that mean out of memory: torch's for a device, Python's for the host."""

CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL")
"""Signals that a process brings on itself, by what its compiled code does."""
TRACE = "PYTHONFAULTHANDLER=1"


@rule("trend.ended_abnormally", "Ended abnormally", steps=False)
def check(run: RunContext) -> Advice | None:
    state = run.run.state
    if state not in ("failed", "killed") or run.lead is None:
        return None
    phase = run.lead.live_phase
    free = _memory_free(run)
    full = free is not None and free < run.policy.memory_exhausted
    where = f" {moment(phase)}" if phase else ""
    return Advice(
        title=f"{_how(run)}{where} after {units.whole(run.run.steps)} steps",
        remedy=_remedy(run, full),
        change=""
        if state != "killed"
        else TRACE
        if run.run.error in CRASHES
        else "dmesg | grep -i 'out of memory'",
        evidence={
            "state": state,
            "error": run.run.error,
            "steps": run.run.steps,
            "live_phase": phase,
            "memory_available_ratio": free,
        },
        severity="critical",
    )


def _how(run: RunContext) -> str:
    if run.run.state == "killed":
        return f"Killed by {run.run.error}" if run.run.error else "Killed"
    if run.run.error in OUT_OF_MEMORY:
        return f"Out of memory ({run.run.error})"
    return f"Failed with {run.run.error}" if run.run.error else "Failed with an exception"


def _remedy(run: RunContext, full: bool) -> str:
    if run.run.error in OUT_OF_MEMORY:
        return "A smaller batch, mixed precision or activation checkpointing needs less memory."
    if full:
        return "The machine was out of memory: fewer workers, a smaller batch."
    if run.run.state == "failed":
        return "Read the traceback in the run's own output."
    if run.run.error in CRASHES:
        return (
            "Compiled code crashed (a library, an extension, a kernel), not Python: run it with "
            "`PYTHONFAULTHANDLER=1`, which prints the Python line it was called from."
        )
    return (
        "Killed from outside (signal, out-of-memory killer, scheduler), or by its own `os._exit`: look at "
        "dmesg and the job's log."
    )


def _memory_free(run: RunContext) -> float | None:
    """Share of the machine's memory that is available."""
    memory = run.snapshot.host.memory
    return memory.available_bytes / memory.total_bytes if memory and memory.total_bytes else None
