"""Predicted against realised: which findings of run A are gone in run B, whose remedy was applied, and
what each brought.

A finding can go because its own remedy was applied, or because another one made it pointless (samples
that are cheap now need no workers). Where a remedy is a setting, the two configurations tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from monitor.snapshot import Finding, Run, Speedup

PROMISING = 1.03
"""A finding that promised less than this cannot be what made the difference."""

SETTINGS: dict[str, tuple[tuple[str, ...], ...]] = {
    "input.no_workers": (("loader", "num_workers"),),
    "input.too_few_workers": (("loader", "num_workers"),),
    "input.too_many_workers": (("loader", "num_workers"), ("threads", "torch")),
    "input.prefetch_low": (("loader", "prefetch_factor"),),
    "input.workers_restarted": (("loader", "persistent_workers"),),
    "transfer.unpinned_memory": (("loader", "pin_memory"),),
    "compute.small_batch": (("loader", "batch_size"),),
    "compute.batch_room": (("loader", "batch_size"),),
    "memory.batch_suggestion": (("loader", "batch_size"),),
    "compute.amp_off": (("precision", "autocast"),),
    "compute.tf32_off": (("precision", "matmul_tf32"), ("precision", "matmul_precision")),
    "compute.double_precision": (("model", "dtype"),),
    "compute.compile_off": (("model", "compiled"), ("compile", "used")),
    "compute.optimizer_unfused": (("optimizer", "fused"), ("optimizer", "foreach")),
    "compute.cudnn_benchmark_off": (("cudnn", "benchmark"),),
    "compute.deterministic": (("cudnn", "deterministic"), ("deterministic_algorithms",)),
    "compute.anomaly_mode": (("anomaly",),),
    "compute.activation_checkpointing": (("model", "checkpointing"),),
    "compute.threads_few": (("threads", "torch"), ("threads", "omp_env")),
    "compute.threads_oversubscribed": (("threads", "torch"), ("loader", "num_workers")),
}
"""Finding id → what its remedy changes in the configuration."""


class Realised(msgspec.Struct, frozen=True):
    """A finding of A that is gone in B."""

    id: str
    title: str
    rank: int | None
    gpu: str | None
    predicted: Speedup | None
    realised: float | None
    """The speed-up, when this is the only remedy that can have made it; a part of it, in the proportion
    of what each promised, when several can; None when it went without its remedy."""
    shared: bool
    """True when `realised` is such a part: a division, not a measurement."""
    inside: bool | None
    """Did it fall inside low…high?"""
    applied: bool | None = None
    """Was its remedy applied, by the two configurations; None: they cannot tell."""


def setting(run: Run, *keys: str) -> Any:
    """A value of the configuration probe; None when it is not known."""
    value: Any = run.config
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def applied(finding: str, a: Run, b: Run) -> bool | None:
    """Did the setting that this finding's remedy changes change from A to B?"""
    pairs = [(setting(a, *keys), setting(b, *keys)) for keys in SETTINGS.get(finding, ())]
    if any(one != two for one, two in pairs):
        return True
    return False if any(one is not None for one, _ in pairs) else None


def _key(finding: Finding) -> tuple[str, int | None]:
    return finding.id, finding.rank


def fates(
    before: Sequence[Finding], after: Sequence[Finding]
) -> tuple[list[Finding], list[Finding], list[Finding]]:
    """Findings of A that are gone in B, that remain, and that are new in B."""
    faults = [finding for finding in before if finding.severity != "healthy"]
    later = [finding for finding in after if finding.severity != "healthy"]
    then, now = {_key(finding) for finding in faults}, {_key(finding) for finding in later}
    gone = [finding for finding in faults if _key(finding) not in now]
    remaining = [finding for finding in faults if _key(finding) in now]
    return gone, remaining, [finding for finding in later if _key(finding) not in then]


def realise(gone: Sequence[Finding], a: Run, b: Run, speedup: float | None) -> tuple[Realised, ...]:
    """What each finding that went brought. Remedies surely applied come first; only when there are
    none are those considered of which the configurations cannot tell."""
    promising = [finding for finding in gone if _likely(finding) >= PROMISING]
    sure = [finding for finding in promising if applied(finding.id, a, b)]
    credited = sure or [finding for finding in promising if applied(finding.id, a, b) is None]
    return tuple(_realised(finding, applied(finding.id, a, b), speedup, credited) for finding in gone)


def _realised(
    finding: Finding, was_applied: bool | None, speedup: float | None, credited: Sequence[Finding]
) -> Realised:
    got: float | None = None
    if speedup is not None and finding in credited:
        part = math.log(_likely(finding)) / sum(math.log(_likely(one)) for one in credited)
        got = speedup**part
    gain = finding.speedup
    return Realised(
        id=finding.id,
        title=finding.title,
        rank=finding.rank,
        gpu=finding.gpu,
        predicted=gain,
        realised=got,
        shared=got is not None and len(credited) > 1,
        inside=gain.low <= got <= gain.high if gain is not None and got is not None else None,
        applied=was_applied,
    )


def _likely(finding: Finding) -> float:
    return finding.speedup.likely if finding.speedup is not None else 1.0


def together(gone: Sequence[Finding]) -> Speedup | None:
    gains = [finding.speedup for finding in gone if finding.speedup is not None]
    if not gains:
        return None
    return Speedup(
        low=max(gain.low for gain in gains),
        likely=math.prod(gain.likely for gain in gains),
        high=math.prod(gain.high for gain in gains),
        why="the product of what each promised, so at most",
    )
