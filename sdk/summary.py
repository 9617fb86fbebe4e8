"""What `get_summary()` gives: a mapping that prints as a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import ring
from .recorder import Recorder
from .statistics import WARMUP, Group

_ADVICE = {
    "data": "The loop waits for its data: more loader workers, or a cheaper __getitem__.",
    "transfer": "Copies to the device dominate: pinned memory and non_blocking=True let them overlap.",
    "forward": "The forward pass dominates: this is the model's own work.",
    "backward": "The backward pass dominates: this is the model's own work.",
    "optimizer": "The optimizer dominates: try fused=True.",
    "between": "Most time passes between the steps: look at what the loop does after each step.",
    "validate": "Validation dominates: run it less often or on fewer batches.",
    "checkpoint": "Checkpoints dominate: save less often or asynchronously.",
    "log": "Logging dominates: log less often.",
    "sync": "The loop waits for the device: read losses less often.",
    "other": "Most time is in no marked phase: mark more phases to see where it goes.",
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
    """The figures of a recorder. Steady figures leave out warm-up and closely watched steps."""
    totals = recorder.totals
    recorder.fold()
    group = totals.typical()
    steady, wall = group.steps, group.ns / 1e9
    phases = _phases(recorder, group)
    values: dict[str, Any] = {
        "name": name,
        "steps": recorder.steps,
        "total_iterations": recorder.steps,
        "seconds": seconds,
        "warmup_steps": totals.group(WARMUP).steps,
        "warmup_seconds": totals.group(WARMUP).ns / 1e9,
        "steady_steps": steady,
        "iterations_per_second": steady / wall if wall else None,
        "samples": totals.samples or None,
        "samples_per_second": group.samples / wall if wall and group.samples else None,
        "tokens": totals.tokens or None,
        "avg_iteration_time": wall / steady if steady else None,
        "min_iteration_time": group.fastest / 1e9 if steady else None,
        "max_iteration_time": group.slowest / 1e9 if steady else None,
        **{f"p{share}": _quantile(group, share / 100) for share in (50, 95, 99)},
        "phases": phases,
        "bottleneck": _bottleneck(phases),
        "overhead_ratio": _overhead(recorder, seconds),
        "errors": recorder.errors,
        **extra,
    }
    return Summary(values)


def _quantile(group: Group, share: float) -> float | None:
    found = group.histogram.quantile(share)
    return None if found is None else found / 1e9


def _phases(recorder: Recorder, group: Group) -> dict[str, float]:
    """Share of the steady time per phase, largest first; what no phase claims is `other`."""
    if not group.ns:
        return {}
    shares = {recorder.names.name(phase): group.phases[phase] / group.ns for phase in recorder.totals.used}
    shares = {name: share for name, share in shares.items() if share > 0}
    shares["other"] = max(0.0, 1.0 - sum(shares.values()))
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _bottleneck(phases: dict[str, float]) -> str | None:
    if not phases or list(phases) == ["other"]:
        return None
    largest, share = next(iter(phases.items()))
    advice = _ADVICE.get(largest, f"The phase {largest!r} dominates.")
    return f"{largest} takes {share:.0%} of the step. {advice}"


def _overhead(recorder: Recorder, seconds: float) -> float | None:
    spent = recorder.spent_ns
    return spent / 1e9 / seconds if seconds > 0 else None


def _lines(values: dict[str, Any]) -> Iterator[str]:
    yield f"gpumon: {values['name']}"
    yield f"  steps        {values['steps']} in {_time(values['seconds'])}" + (
        f" ({values['warmup_steps']} warm-up, {_time(values['warmup_seconds'])})"
        if values["warmup_steps"]
        else ""
    )
    yield from _rates(values)
    for name, share in values["phases"].items():
        yield f"  {name:<12} {share:6.1%}  {'█' * round(share * 30)}"
    if values["bottleneck"]:
        yield f"  bottleneck   {values['bottleneck']}"
    if values.get("note"):
        yield f"  note         {values['note']}"
    if values["overhead_ratio"] is not None and values["steps"]:
        yield f"  gpumon cost  {values['overhead_ratio']:.3%} of the time"
    if values.get("inactive"):
        yield f"  not recorded {values['inactive']}"


def _rates(values: dict[str, Any]) -> Iterator[str]:
    rate = values["iterations_per_second"]
    if rate is None:
        return
    samples = values["samples_per_second"]
    yield f"  speed        {rate:.2f} it/s" + (f", {samples:,.0f} samples/s" if samples else "")
    steps = ", ".join(f"p{share} {_time(values[f'p{share}'])}" for share in (50, 95, 99))
    yield f"  step         {_time(values['avg_iteration_time'])} mean, {steps}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "—"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min"


NOTE_CPU = "phases are wall time (CPU-only run)"
PHASES = ring.PHASES
