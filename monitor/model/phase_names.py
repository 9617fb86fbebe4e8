"""What phases, stalls and parts of the set-up are called in the user interface."""

from __future__ import annotations

from collections.abc import Iterable

PHASES = {
    "data": "data loading",
    "transfer": "copy to the device",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "between": "between the steps",
    "zero_grad": "zero_grad",
    "validate": "validation",
    "checkpoint": "checkpoint",
    "grad_norm": "gradient norms",
    "sync": "reading values",
    "log": "logging",
    "other": "other code in the step",
}
SETUP = {
    "imports": "imports",
    "data": "preparing the data",
    "model": "building the model",
    "other": "the rest of the set-up",
    "set-up": "set-up",
}
STALLS = {
    "recompile": "recompilation",
    "gc": "garbage collection",
    "epoch_start": "the loader beginning an epoch",
}


BETWEEN = "between two steps"
UNSEEN = "outside any step that was read (including gpumon's own cost)"
AFTER = "after the last step"

APART = {
    (True, False): " without validation",
    (False, True): " without checkpoints",
    (True, True): " without validation and checkpoints",
}
"""Whether the run validates, and whether it saves checkpoints."""


def apart(phases: Iterable[str]) -> str:
    """What a step's own times (median, p95) are without, of the phases the run has; empty if nothing."""
    there = set(phases)
    return APART.get(("validate" in there, "checkpoint" in there), "")


def moment(phase: str) -> str:
    """When something happened that happened in this phase: "in backward"."""
    return BETWEEN if phase == "between" else f"in {phase}"


def part(kind: str, name: str) -> str:
    """A part of a run's time (`monitor.model.account`)."""
    if kind == "setup":
        return SETUP.get(name, name)
    if kind == "stall":
        return f"stalls: {stall(name)}"
    return {"unseen": UNSEEN, "after": AFTER}.get(kind, phase(name))


def phase(name: str) -> str:
    """A phase the user defined keeps its name."""
    return PHASES.get(name, name)


def stall(kind: str) -> str:
    return STALLS.get(kind, phase(kind))
