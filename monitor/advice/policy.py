"""Every threshold of the rules in one place, so that a site can set its own from a TOML file.

The targets come from the guides the product grew out of: GPU 70–90 % busy, memory below 80 %.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path

from monitor.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Ratios are 0–1, times in seconds unless the name says otherwise."""

    gpu_busy_low: float = 0.70
    """Below this utilization a GPU that trains is underused (target 70–90 %)."""
    gpu_busy_high: float = 0.90
    """Above this the GPU is the limit, which is good news."""
    memory_high: float = 0.80
    """Device memory use above this is worth a warning (target < 80 %)."""
    memory_full: float = 0.95
    """Device memory use above this is one allocation away from running out."""

    min_steps: int = 8
    """Steady steps before a rule about step time may speak."""
    min_seconds: float = 0.15
    """Steady seconds measured before a rule about step time may speak."""
    lost_share: float = 0.10
    """Share of lost records above which rules about step time abstain."""
    confirm_ticks: int = 2
    """Evaluations in a row before a finding of a live run is shown."""
    clear_ticks: int = 4
    """Evaluations in a row without it before a finding of a live run goes away."""

    warning_gain: float = 1.10
    """Likely speed-up from which a finding is a warning."""
    hint_gain: float = 1.05
    """Likely speed-up below which a finding is not worth a reader's time."""
    low_gain: float = 1.03
    """Even the low end of the range must promise this much for a warning."""

    data_share: float = 0.16
    """Share of the step spent waiting for data above which the loader is looked at."""
    dominant_share: float = 0.5
    """Share of a whole that makes one part of it "the" cause."""
    hot_share: float = 0.35
    """Share of a phase one user line must have before a finding names it as the cause."""
    phase_share: float = 0.08
    """Share of the run a side job (logging, norms, validation, checkpoints) may take."""
    hint_share: float = 0.05
    """Share of the step copies must take before they are looked at."""
    validation_share: float = 0.15
    """Share of the run validation may take."""
    grad_norm_share: float = 0.15
    """Share of the step `clip_grad_norm_` may take (a loop of one's own: `phase_share`)."""
    loop_share: float = 0.30
    """Share of the step a Python loop must take to be worth replacing."""
    user_code_share: float = 0.15
    """Share of the step one line of the user's own code must take to be named."""
    worker_transport_seconds: float = 0.0015
    """What handing one batch from a worker to the main process costs: a few tensors, each through a
    socket to the worker that made it."""
    worker_pinned_seconds: float = 0.0004
    """The same when a thread takes the batches over and pins them meanwhile."""
    worker_slowdown: float = 1.1
    """Factor on CPU work that moves from the loop into a worker."""
    worker_batch_seconds: float = 0.0012
    """What a worker spends on a batch besides: shared memory for its tensors, pickling, the queue."""
    crowded_cores: float = 0.8
    """What cores give, of their number, when more processes want them than there are."""
    worker_start_seconds: float = 0.08
    """What starting one worker costs at least (fork); spawn is ten times that."""

    tiny_batch: int = 16
    """Batches up to this size are suspected of paying more for the step than for the samples."""
    batch_target_step_seconds: float = 0.02
    """A step this long amortises the fixed cost of a step well."""
    op_seconds_cpu: float = 18e-6
    """Fixed cost of one module, forward and backward together, on a CPU (per leaf module)."""
    optimizer_share: float = 0.15
    """Share of the step an optimizer update may take before its implementation matters."""
    optimizer_warn_share: float = 0.6
    """Share of the step from which a default (unfused) optimizer is worth a warning."""
    fixed_share: float = 0.4
    """Share of a tiny batch's step that is fixed cost before a larger batch is advised."""
    cpu_flops: float = 4e10
    """Floating-point operations a second one CPU core does in small matrix products."""
    starved_share: float = 0.15
    """Device time without work, with no data wait, that means launch-bound."""

    io_wait: float = 0.20
    """Share of time in I/O wait that means the disk is the limit."""
    cpu_full: float = 0.92
    """CPU utilization at which more workers cannot help."""
    other_cpu: float = 0.30
    """Share of all cores used by processes outside the run that counts as contention."""
    quota_throttled: float = 0.10
    """Share of scheduling periods in which the container's CPU quota stopped the run."""

    leak_bytes: int = 24 << 20
    """Growth of memory that is worth calling a leak."""
    leak_bytes_per_step: float = 16 << 10
    """Growth per step below which a leak is not called one."""
    leak_ratio: float = 0.04
    """Growth relative to the start that is worth calling a leak."""
    trend_ratio: float = 0.80
    """Throughput now over the best sustained throughput below which a run decays."""
    hung_seconds: float = 30.0
    """No step for this long, and for ten usual steps, is a hang."""
    stall_share: float = 0.08
    """Share of time in stalls that is worth a finding."""
    setup_seconds: float = 120.0
    """Time from the start to the first step that is long in itself."""
    setup_share: float = 0.5
    """Share of a run's life spent before the first step that is long for a short run."""
    setup_short_seconds: float = 20.0
    """Set-up shorter than this is not mentioned, whatever its share."""
    idle_seconds: float = 300.0
    """Allocated and without work for this long is idle."""
    straggler_ratio: float = 1.10
    """Own work of the slowest rank over the median rank's."""
    jitter_ratio: float = 3.0
    """p95 over p50 of the step that counts as unsteady."""
    gc_share: float = 0.05
    """Share of the step in Python's garbage collector that is worth a finding."""

    throttle_clock_ratio: float = 0.90
    """SM clock over its maximum below which clocks count as low while the GPU is busy."""
    swap_bytes_per_second: float = 1 << 20
    """Swap traffic above this slows training down."""


DEFAULT_POLICY = Policy()


def load_policy(path: Path) -> Policy:
    """The policy with what a TOML file sets; unknown names and wrong types are the user's error."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the policy file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    return from_table(table.get("policy", table), str(path))


def from_table(table: dict[str, object], where: str) -> Policy:
    """The default policy with the values of a TOML table put over it."""
    known = {field.name: getattr(DEFAULT_POLICY, field.name) for field in fields(Policy)}
    for name, value in table.items():
        if name not in known:
            raise UserError(f"{where}: no such threshold: {name}", hint=f"known: {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{where}: {name} must be a number of at least 0, not {value!r}")
    return replace(DEFAULT_POLICY, **{name: type(known[name])(value) for name, value in table.items()})
