"""What `get_summary()` returns: a mapping that prints as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import ring, units
from ..statistics import overhead_ratio
from ._totals import WARMUP, Group
from .recorder import Recorder

_ADVICE = {
    "data": "The loop waits for data: use more loader workers or a cheaper __getitem__.",
    "transfer": "Copies to the device dominate: use pinned memory and non_blocking=True to overlap them.",
    "forward": "The forward pass dominates: this is the model's own work.",
    "backward": "The backward pass dominates: this is the model's own work.",
    "optimizer": "The optimizer dominates: try fused=True.",
    "between": "Most of the time passes between steps: check what the loop does after each step.",
    "validate": "Validation dominates: run it less often or on fewer batches.",
    "checkpoint": "Checkpoints dominate: save less often or asynchronously.",
    "log": "Logging dominates: log less often.",
    "sync": "The loop waits for the device: read losses less often.",
    "other": "Most of the time is in no marked phase: mark more phases to see where it goes.",
}


class Summary(Mapping[str, Any]):
    """Figures of a run by key; `print` shows them as text."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Summary({self._values!r})"

    def __str__(self) -> str:
        return "\n".join(_lines(self._values))


def summarize(recorder: Recorder, name: str, seconds: float, extra: dict[str, Any]) -> Summary:
    """The figures of a recorder. Steady figures exclude warm-up and sampled steps."""
    totals = recorder.totals
    recorder.fold()
    group = totals.typical()
    step = group.steady.seconds()
    phases = _phases(recorder, group)
    values: dict[str, Any] = {
        "name": name,
        "steps": recorder.steps,
        "total_iterations": recorder.steps,
        "seconds": seconds,
        "warmup_steps": totals.group(WARMUP).steps,
        "warmup_seconds": totals.group(WARMUP).raw_ns / 1e9,
        "steady_steps": group.steps,
        "iterations_per_second": group.per_second(group.steps),
        "micro_batches": group.micro_batches_per_step,
        "micro_batches_per_second": group.per_second(group.micro_batches),
        "samples": totals.samples or None,
        "samples_per_second": group.per_second(group.samples),
        "tokens": totals.tokens or None,
        "avg_iteration_time": step.get("mean"),
        "min_iteration_time": step.get("min"),
        "max_iteration_time": step.get("max"),
        **{name: step.get(name) for name in ("p50", "p95", "p99")},
        "phases": phases,
        "bottleneck": _bottleneck(phases),
        "overhead_seconds": recorder.spent_ns / 1e9,
        "overhead_ratio": overhead_ratio(recorder.spent_ns, int(seconds * 1e9)),
        "errors": recorder.errors,
        **extra,
    }
    return Summary(values)


def _phases(recorder: Recorder, group: Group) -> dict[str, float]:
    """Share of the steady time per phase, largest first; unclaimed time is `other`."""
    shares = group.shares([recorder.names.name(phase) for phase in range(ring.PHASE_SLOTS)])
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _bottleneck(phases: dict[str, float]) -> str | None:
    if not phases or list(phases) == ["other"]:
        return None
    largest, share = next(iter(phases.items()))
    advice = _ADVICE.get(largest, f"The phase {largest!r} dominates.")
    return f"{largest} takes {units.percent(share)} of the step. {advice}"


def _lines(values: dict[str, Any]) -> Iterator[str]:
    yield f"gpumon: {values['name']}"
    yield f"  steps        {values['steps']} in {units.seconds(values['seconds'])}" + (
        f" ({values['warmup_steps']} warm-up, {units.seconds(values['warmup_seconds'])})"
        if values["warmup_steps"]
        else ""
    )
    yield from _rates(values)
    for name, share in values["phases"].items():
        yield f"  {name:<12} {units.percent(share):>6}  {'█' * round(share * 30)}"
    if values["bottleneck"]:
        yield f"  bottleneck   {values['bottleneck']}"
    if values.get("note"):
        yield f"  note         {values['note']}"
    if values["steps"]:
        ratio = values["overhead_ratio"]
        share = f", {units.small_percent(ratio)} of the time" if ratio is not None else " in total"
        yield f"  gpumon cost  {units.seconds(values['overhead_seconds'])}{share}"
    if values.get("inactive"):
        yield f"  not recorded {values['inactive']}"


def _rates(values: dict[str, Any]) -> Iterator[str]:
    rate = values["iterations_per_second"]
    if rate is None:
        return
    samples = values["samples_per_second"]
    micro = values["micro_batches_per_second"] if values["micro_batches"] else None
    yield (
        f"  speed        {units.number(rate)} it/s"
        + (f", {units.number(micro)} micro-batches/s" if micro else "")
        + (f", {units.number(samples)} samples/s" if samples else "")
    )
    steps = ", ".join(f"p{share} {units.seconds(values[f'p{share}'])}" for share in (50, 95, 99))
    yield f"  step         {units.seconds(values['avg_iteration_time'])} mean, {steps}"


NOTE_CPU = "phases are wall time (CPU-only run)"
