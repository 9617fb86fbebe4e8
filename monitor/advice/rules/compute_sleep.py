"""The loop sleeps.

Looks at: time in `time.sleep` inside the training loop.
Why: A pause left in the loop (for pacing, polling, a debug aid) is pure loss.
Remedy: remove it; where it waits for something, wait for that itself.
Gain: all of that time; of a loop that asks again and again, at most the last sleep.
"""

from __future__ import annotations

from monitor.advice.context.hotspot import Hotspot
from monitor.advice.context.run import RunContext
from monitor.advice.evidence import edits, hot_lines
from monitor.advice.evidence.side_jobs import side_job
from monitor.advice.prediction.gain import Bounds
from monitor.advice.prediction.step_model import scaled
from monitor.advice.rule import Advice, rule
from monitor.model import units

SAVED = Bounds(low=0.97, likely=1.0, high=1.0)
"""Share of the sleep that is saved."""
POLLED = Bounds(low=0.0, likely=0.5, high=1.0)
"""Share of the last sleep of a loop that asks again and again: what it waits for may come at any moment."""
NEARLY_ALL = 0.95
"""If one line is less than this share of the sleep, the sentence says that there is more."""


@rule(
    "compute.sleep", "Sleep in the loop", suppresses=("compute.user_code", "compute.launch_bound"), bonus=0.5
)
def check(run: RunContext) -> Advice | None:
    own_data = () if run.setting("loader") else ("data",)  # what a loader's samples wait for is its own cause
    job = side_job(run, "", "sleep", also=own_data)
    if job.spot is None or job.share < run.policy.phase_share:
        return None
    spot = job.spot
    most = "" if run.hot_seconds(spot) >= NEARLY_ALL * job.seconds else ", most of it"
    return Advice(
        title=f"The loop sleeps {units.seconds(job.seconds)} a step ({units.percent(job.share)}){most}"
        f"{job.where}",
        remedy=_remedy(spot),
        change=edits.removed(spot.file, spot.line, spot.code) if spot.removable and not spot.polls else "",
        effect="identical",
        avoid="Removing a sleep that rate-limits calls to a shared service: wait there instead.",
        evidence={"sleep_share": job.share, "polls": spot.polls or None, **hot_lines.evidence(run, spot)},
        gain=POLLED.part_of(scaled(job.change, 1.0 / max(1.0, spot.calls or 1.0)))
        if spot.polls
        else SAVED.part_of(job.change),
        because=f"{units.seconds(job.seconds)} of {units.seconds(run.period)} a step is sleep",
    )


def _remedy(spot: Hotspot) -> str:
    if not spot.polls:
        return f"Remove the sleep at {spot.place}."
    return (
        f"The loop at {spot.place} sleeps until something has happened: wait for that itself (`queue.get`, "
        "`Event.wait`, a future's `result`), which ends at once when it happens."
    )
