"""Every threshold of the rules in one place, so that a site can override it in a TOML file.

Where the values come from: the targets (GPU 70–90 % busy, memory below 80 %) are those of the guides the
product grew out of; prices in seconds say where they were measured; the rest is judgement, checked against
the scripts of the diagnosis benchmark, which ran on one machine with two cores and no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from monitor.model.errors import UserError
from monitor.model.files import read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Ratios are 0–1 and times in seconds, unless the name says otherwise."""

    prices_measured: bool = False
    """Whether the prices in seconds were measured on this machine (`gpumon doctor --calibrate`) rather than
    on the one the benchmarks ran on. Not a threshold: no file sets it."""

    # GPUs
    gpu_busy_low: float = 0.70
    """Below this utilization a training GPU is underused (target 70–90 %)."""
    gpu_busy_high: float = 0.90
    """Above this the GPU is the limit, which is good news (target 70–90 %)."""
    gpu_idle: float = 0.05
    """Below this utilization a GPU without a run counts as idle."""
    gpu_unused: float = 0.02
    """Below this utilization a GPU held by a process does nothing at all."""
    gpu_starved: float = 0.20
    """A run is starving once its device waits for work for this share of the step."""
    idle_seconds: float = 300.0
    """A GPU held without work for this long is an idle allocation."""
    memory_high: float = 0.80
    """Device memory use above this is worth a warning (target < 80 %)."""
    memory_full: float = 0.95
    """Device memory use above this is one allocation away from running out."""
    memory_low: float = 0.60
    """Up to this memory use there is room to spare, so trading time for memory is unnecessary."""
    throttle_clock_ratio: float = 0.90
    """A power limit costs speed once the SM clock is below this share of its maximum."""
    locked_clock_ratio: float = 0.70
    """A busy, unthrottled GPU counts as slow once its SM clock is below this share of its maximum."""
    link_busy: float = 0.20
    """From this utilization a PCIe link should run at full speed; an idle GPU lowers it on purpose."""
    shared_bytes: int = 256 << 20
    """A GPU counts as shared once other processes hold this much of its memory; an idle context holds
    less."""
    shared_sm: float = 0.05
    """A GPU counts as shared once other processes use this share of its SMs."""

    # When a rule may report
    min_steps: int = 8
    """Steady steps needed before a rule about step time may report."""
    few_steps: int = 50
    """With fewer steady steps than this, a verdict says how few it rests on."""
    min_seconds: float = 0.15
    """Steady seconds needed before a rule about step time may report."""
    lost_share: float = 0.10
    """Share of lost records above which rules about step time abstain."""
    confirm_ticks: int = 2
    """Consecutive evaluations before a finding about a live run is shown."""
    clear_ticks: int = 4
    """Consecutive evaluations without it before a finding about a live run disappears."""
    warning_gain: float = 1.10
    """A finding becomes a warning from this likely speed-up."""
    hint_gain: float = 1.05
    """Below this likely speed-up a finding is not worth a reader's time."""
    low_gain: float = 1.03
    """A warning must promise at least this speed-up."""

    # Input
    data_share: float = 0.16
    """The loader is examined once the step spends more than this share waiting for data."""
    input_bound_share: float = 0.25
    """The same when all we know is that the step waits."""
    dominant_share: float = 0.5
    """Share of a whole that makes one part of it "the" cause."""
    sampler_share: float = 0.4
    """The sampler is worth a finding from this share of loading."""
    sampler_step_share: float = 0.05
    """The sampler is worth a finding from this share of the step."""
    prefetch_low: int = 4
    """Up to this many prefetched batches per worker the queue counts as shallow; also the smallest
    suggested."""
    prefetch_stock: int = 8
    """Above this many prefetched batches over all workers the queue is deep enough."""
    workers_gain: float = 0.95
    """More workers are suggested only if they cut the step to at most this share of its time."""
    in_place_gain: float = 0.85
    """Loading in the loop is suggested only if it cuts the step below this share of its time."""
    workers_per_core: float = 1.5
    """Above this there are too many workers per core, if the step waits for data."""
    idle_workers_per_core: float = 3.0
    """From this there are too many workers per core, even if nothing waits for them."""
    many_workers: int = 4
    """Fewer workers than this are never too many on their own."""
    workers_busy: float = 0.5
    """Workers that are busy for more than this share of the time are needed."""
    worker_transport_seconds: float = 0.0015
    """Cost of handing one batch from a worker to the main process: a few tensors, each through a socket to
    the worker that made it. Measured on a machine with two cores."""
    worker_pinned_seconds: float = 0.0004
    """The same when a thread takes over the batches and pins them in the meantime. An estimate."""
    worker_slowdown: float = 1.1
    """Factor on CPU work that moves from the loop into a worker. An estimate for two cores."""
    worker_batch_seconds: float = 0.0012
    """What a worker spends on a batch on top: shared memory for its tensors, pickling, the queue. An estimate
    for two cores."""
    worker_start_seconds: float = 0.08
    """Minimum cost of starting one worker (fork). An estimate for two cores."""
    crowded_cores: float = 0.8
    """What oversubscribed cores deliver, as a share of their number. An estimate for two cores."""

    # The loop
    phase_share: float = 0.08
    """Share of the run a side job (logging, norms, validation, checkpoints) may take."""
    validation_share: float = 0.15
    """Share of the run validation may take."""
    grad_norm_share: float = 0.15
    """Share of the step `clip_grad_norm_` may take (hand-written loops: `phase_share`)."""
    side_job_count: int = 3
    """A periodic side job must be seen this often before its share counts."""
    loop_share: float = 0.20
    """Share of the step a Python loop must take, with its part of backward, to be worth replacing."""
    hot_share: float = 0.35
    """A finding names a user line as the cause only from this share of a phase."""
    user_code_share: float = 0.15
    """A line of user code is named from this share of the step."""
    user_code_step_share: float = 0.25
    """From this share of the step such a line is named whatever its share of the phase."""
    gc_share: float = 0.05
    """Python's garbage collector is worth a finding from this share of the step."""
    hint_share: float = 0.05
    """Copies are examined from this share of the step."""
    many_copies: int = 12
    """From this many copies per step they count as many."""
    small_copy_bytes: int = 256 << 10
    """Up to this size a copy is small: its fixed cost outweighs the transfer."""

    # Compute
    tiny_batch: int = 16
    """Up to this size a batch may cost more for the step itself than for its samples."""
    fixed_share: float = 0.4
    """A larger batch is advised once fixed cost makes up this share of a tiny batch's step."""
    batch_wait_share: float = 0.30
    """Above this share of data wait a larger batch would only wait longer."""
    optimizer_share: float = 0.15
    """Share of the step an optimizer update may take before its implementation matters."""
    optimizer_warn_share: float = 0.6
    """From this share of the step a default (unfused) optimizer is worth a warning."""
    many_groups: int = 8
    """Above this many parameter groups the update slows down noticeably."""
    starved_share: float = 0.15
    """Share of device time without work, with no data wait, that means launch-bound."""
    queue_ahead: float = 0.2
    """How often the device may still have work at the end of a phase if the loop is launch-bound."""
    compile_steps: int = 500
    """Compilation is suggested only after this many steps: it has to pay for its warm-up."""
    many_recompiles: int = 6
    """From this many recompilations they are worth a finding at any cost: dynamo gives up at eight."""
    threads_excess: float = 1.25
    """Above this many compute threads per core the cores are oversubscribed."""
    threads_step_seconds: float = 0.01
    """Steps shorter than this gain nothing from more threads."""
    op_seconds_cpu: float = 18e-6
    """Fixed cost of one module on a CPU, per pass. Measured on a machine with two cores."""
    cpu_flops: float = 4e10
    """Floating-point operations per second of one CPU core in small matrix products. An estimate for the
    machine the benchmarks ran on."""

    # The machine
    io_wait: float = 0.20
    """Share of time in I/O wait that means the disk is the limit."""
    disk_busy: float = 0.5
    """Share of the time a disk must be busy to be the limit."""
    cpu_full: float = 0.92
    """CPU utilization at which more workers cannot help."""
    own_cpu_full: float = 0.8
    """The CPU is the run's own limit once the run itself uses this share of all cores."""
    other_cpu: float = 0.30
    """Contention once processes outside the run use this share of all cores."""
    other_cpu_heavy: float = 0.60
    """The same for a warning instead of a hint."""
    cpu_pressure: float = 0.20
    """Contention once tasks wait for a core for this share of the time."""
    cpu_pressure_heavy: float = 0.50
    """The same for a warning instead of a hint."""
    contention_ticks: int = 30
    """Evaluations for which others must be busy before a warning: half a minute at the default interval."""
    quota_throttled: float = 0.10
    """Share of scheduling periods in which the container's CPU quota throttles the run."""
    swap_bytes_per_second: float = 1 << 20
    """Swap traffic above this slows training down."""
    swap_memory_used: float = 0.70
    """Above this memory use swap traffic counts as a lack of memory."""
    memory_exhausted: float = 0.05
    """If less than this share of memory was free when a run ended, memory counts as the cause."""

    # Over the run
    leak_bytes: int = 24 << 20
    """Memory growth that is worth calling a leak."""
    leak_bytes_per_step: float = 16 << 10
    """Slower growth per step than this is not called a leak."""
    leak_ratio: float = 0.04
    """Growth relative to the start that is worth calling a leak."""
    trend_ratio: float = 0.80
    """A run is decaying once its throughput falls below this share of its best sustained throughput."""
    trend_falling: float = 0.90
    """Below this share of the run's own best throughput its trend is called falling."""
    trend_collapsed: float = 0.60
    """Below this share of the run's own best throughput its trend is called collapsed."""
    hung_seconds: float = 30.0
    """No step for this long is a hang, unless the run's own steps take as long."""
    hung_steps: float = 10.0
    """No step for this many typical (p95) steps is a hang."""
    hung_longest: float = 3.0
    """No step for this many times the longest step so far is a hang."""
    stall_share: float = 0.08
    """Stalls are worth a finding from this share of the time."""
    stall_count: int = 4
    """Stalls of one kind needed to call them periodic."""
    setup_seconds: float = 120.0
    """Set-up of this length is long in itself."""
    setup_share: float = 0.5
    """Set-up is long for a short run if it takes this share of its life."""
    setup_short_seconds: float = 10.0
    """Set-up shorter than this is never mentioned."""

    # Ranks
    straggler_ratio: float = 1.10
    """Own work of the slowest rank, relative to the median rank's."""
    straggler_share: float = 0.05
    """Share of the step that all ranks must lose to the slowest one."""
    collective_share: float = 0.15
    """Exposed collectives are worth a finding from this share of the step."""


DEFAULT_POLICY = Policy()


def load_policy(path: Path) -> Policy:
    """The policy with the values a TOML file sets; unknown names and wrong types are the user's error."""
    import tomllib  # not at the top: most users have no such file

    try:
        table = tomllib.loads(read_text(path))
    except OSError as error:
        raise UserError(f"cannot read the policy file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}") from error
    return from_table(table.get("policy", table), str(path))


def from_table(table: dict[str, object], where: str) -> Policy:
    """The default policy, overridden by the values of a TOML table."""
    known = {field.name: getattr(DEFAULT_POLICY, field.name) for field in fields(Policy)}
    for name, value in table.items():
        if name not in known or isinstance(known[name], bool):
            raise UserError(f"{where}: no such threshold: {name}", hint=f"known: {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{where}: {name} must be a number of at least 0, not {value!r}")
    return replace(DEFAULT_POLICY, **{name: type(known[name])(value) for name, value in table.items()})
