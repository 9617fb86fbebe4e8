"""The loop waits for the device in every step to read a value.

Looks at: on a GPU, its gaps after the CPU has waited for it, and how long the step would take without these
    waits; otherwise the time in `.item()`, `.cpu()`, `.tolist()`.
Why: Reading a value makes the CPU wait until the GPU has finished everything queued: no kernel can be
    launched in the meantime and the queue runs empty.
Remedy: accumulate on the device and read the value every 50–100 steps.
Gain: the step replayed without its waits. The wait itself is the device finishing work it had to do anyway.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple, TypedDict

from monitor.advice.context.run import RunContext
from monitor.advice.evidence import hot_lines
from monitor.advice.evidence.side_jobs import SideJob, side_job
from monitor.advice.evidence.waits import selects
from monitor.advice.prediction.gain import Bounds, plain_ratio
from monitor.advice.prediction.limit import share_of
from monitor.advice.prediction.step_model import Change, Saving, scaled
from monitor.advice.rule import Advice, rule
from monitor.model import units
from monitor.model.finding import Effect

MANY_READS = 8
"""From this many reads per step, making and reading the values is what the lines are for."""
LEAST_READS = 0.5
"""With fewer reads per step than this they are not made every step."""
GPU_SAVED, CPU_SAVED = Bounds(low=0.16, likely=0.4, high=1.0), Bounds(low=0.36, likely=0.9, high=1.0)
"""Share of the reading that is saved; on a GPU part of the wait is work that must be done anyway.
Judgement."""

DEVICE_SAVED = Bounds(low=0.95, likely=1.0, high=1.0)
"""Share of the waits for the device that goes: even a few that stay keep most of the cost. Judgement; never
checked on a GPU here."""
WITHOUT = Change(syncs_left=0.0)
"""The step without its waits for values."""


@rule(
    "compute.sync_every_step",
    "Synchronization every step",
    suppresses=("compute.user_code", "compute.python_loop"),
    bonus=0.2,
)
def check(run: RunContext) -> Advice | None:
    return _on_device(run) if run.lanes is not None else _on_host(run)


def _on_device(run: RunContext) -> Advice | None:
    """Only the gaps after a wait are its cost: while the host waits, the device works. With the host earlier,
    later gaps close too, as with a wait for data."""
    device, lanes = run.device, run.lanes
    if device is None or lanes is None or not device.syncs or device.sync_idle_seconds is None:
        return None
    if device.bound == "device":
        return None  # it has work nearly all the time, with or without waits
    share = max(device.sync_idle_seconds / lanes.period, share_of(plain_ratio(run.model, WITHOUT)))
    cost = share * lanes.period
    if share < run.policy.phase_share:
        return None
    line = _waiting_line(run)
    where = f", most of them at `{line.code}` ({line.place})" if line else ""
    return Advice(
        title=f"Synchronising every step: {units.whole(device.syncs)} waits for the GPU a step leave it "
        f"without work for {units.seconds(cost)} ({units.percent(share)}){where}",
        **_remedy(line),
        evidence={
            "syncs_per_step": device.syncs,
            "idle_after_syncs_seconds": cost,
            "idle_after_syncs_share": share,
            "line": line.place if line else None,
        },
        gain=DEVICE_SAVED.part_of(WITHOUT),
        because="the time in which the GPU has no work because the CPU had waited for it; "
        "the wait itself costs nothing",
    )


class _Remedy(TypedDict):
    remedy: str
    effect: Effect
    price: str
    avoid: str


def _remedy(line: _Line | None) -> _Remedy:
    """The host waits for a value, or for the size of what the line selects."""
    if line is not None and selects(line.code):
        return {
            "remedy": "The CPU waits to learn how many elements are selected. Compute on all of them and "
            "weight those that do not count with zero (`torch.where(mask, x, 0)`, or multiply by the mask).",
            "effect": "rounding",
            "price": "work on the elements that were left out before",
            "avoid": "Averaging over all elements: divide by the number of those that count.",
        }
    return {
        "remedy": "Keep the value as a tensor (`running += loss.detach()`) and read it every 100 steps.",
        "effect": "identical",
        "price": "values known only every 100 steps",
        "avoid": "Reading less often a value that decides something in the loop, such as a NaN check.",
    }


class _Line(NamedTuple):
    place: str
    code: str


def _waiting_line(run: RunContext) -> _Line | None:
    """The line with the most waits for the device, as torch itself named them."""
    lines = run.setting("syncs")
    first = lines[0] if isinstance(lines, list) and lines else None
    if not isinstance(first, dict) or not first.get("code"):
        return None
    return _Line(f"{first.get('file')}:{first.get('line')}", str(first["code"]))


def _on_host(run: RunContext) -> Advice | None:
    job = _measured(run, side_job(run, "sync", "sync"))
    items = run.scalar("sync.items_per_step")
    if not run.policy.phase_share <= job.share <= 1.0 or (items is not None and items < LEAST_READS):
        return None  # little, not in every step, or more than the step itself: then the figures contradict
    reads = "reads of device values" if run.has_cuda else "reads of single values (`.item()` and the like)"
    many = f"{units.whole(items)} {reads} a step" if items else f"{reads} every step"
    where = f",{job.where}" if job.where else ""
    head = "Synchronising every step" if run.has_cuda else "Values read every step"
    return Advice(
        title=f"{head}: {many} take {units.seconds(job.seconds)} ({units.percent(job.share)}){where}",
        remedy="Keep the value as a tensor (`running += loss.detach()`) and read it every 100 steps; "
        "convert whole tensors once instead of element by element.",
        change=job.guarded(job.less_often),
        effect=job.effect,
        price="values known only every 100 steps",
        avoid="Reading less often a value that decides something in the loop, such as a NaN check.",
        evidence={
            "sync_share": job.share,
            "sync_seconds_per_step": job.seconds,
            "items_per_step": items,
            **hot_lines.evidence(run, job.spot),
        },
        gain=(GPU_SAVED if run.has_cuda else CPU_SAVED).part_of(job.change),
        because="on a GPU part of this wait is work that has to be done anyway"
        if run.has_cuda
        else "it is host time",
    )


def _measured(run: RunContext, job: SideJob) -> SideJob:
    """If the SDK timed the reads themselves, that counts rather than the lines they are on; unless there are
    so many that making and reading those values is what the lines are for."""
    seconds_read = run.scalar("sync.seconds_per_step")
    many = (run.scalar("sync.items_per_step") or 0.0) >= MANY_READS
    if seconds_read is None or run.period is None or (many and job.savings and not run.has_cuda):
        return job
    factor = min(1.0, seconds_read / job.seconds) if job.seconds > 0 else 0.0
    if not job.savings:
        return replace(
            job,
            seconds=seconds_read,
            share=seconds_read / run.period,
            savings=(Saving("*", seconds_read, "sync"),),
        )
    return replace(
        job,
        seconds=job.seconds * factor,
        share=job.share * factor,
        savings=scaled(job.change, factor).savings,
    )
