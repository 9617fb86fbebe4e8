"""The most a remedy can give in a run that was probed: what is hidden promises nothing.

Adding a little time in a place costs its slope at least as much as taking time away there gains: a step takes
as long as the longest of what goes on beside one another, and that bends upwards only. So a slope bounds the
gain of a remedy that saves the loop's own seconds there, whatever its size. It does not say how large it is.

Not bounded: what a device computes (the loop's delays say nothing about its speed), the work of loader
processes (they are what hides the loop), and runs of several ranks (only one was delayed, and a remedy
changes all).
"""

from __future__ import annotations

from collections.abc import Mapping

from monitor.advice.prediction.limit import computes_on_device
from monitor.advice.prediction.step_model import Change, StepModel
from monitor.model.run import Run

Places = Mapping[str, float]
"""Place of the loop → of a second saved there, the most that can be won."""
UNKNOWN: Places = {}
NEIGHBOURS = {"data": "data", "transfer": "data", "forward": "backward", "backward": "backward"}
"""Phase → the place that tells about it: a delay there is as if the phase beside it were longer."""
LAST = "optimizer"
"""Tells about everything from the update on, and about what has no place of its own."""


def probed(run: Run) -> Places:
    """What is clear about the places of this run."""
    if run.world_size > 1:
        return UNKNOWN
    return {one.place: one.most for one in run.criticality}


def critical_share(model: StepModel, change: Change, places: Places) -> float:
    """The share of the step that `change` can take away at most; 1 where delays do not say."""
    if not places or model.period <= 0 or not _bounds(model, change):
        return 1.0
    parts: dict[str, float] = {}
    for saving in change.savings:
        parts[saving.part] = parts.get(saving.part, 0.0) + saving.seconds
    if change.workers is not None or change.work_left != 1.0:
        parts["data"] = model.wait
    return sum(_most(part, places) * seconds for part, seconds in parts.items()) / model.period


def _bounds(model: StepModel, change: Change) -> bool:
    """Whether it saves nothing but the loop's own seconds."""
    other = (change.batch, change.everything, change.device_left, change.copies_left, change.syncs_left)
    on_device = model.device_busy is not None or model.lanes is not None
    loads = change.workers is not None or change.work_left != 1.0
    waits = loads or any(saving.part == "data" for saving in change.savings)
    return (
        all(one == 1.0 for one in other)
        and not (on_device and computes_on_device(change))
        and not (waits and model.workers > 0)
    )


def _most(part: str, places: Places) -> float:
    if part == "*":
        return max(places.values())
    return places.get(part, places.get(NEIGHBOURS.get(part, LAST), 1.0))
