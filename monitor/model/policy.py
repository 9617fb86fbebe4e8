"""Every threshold of the rules in one place, so that a site can set its own from a TOML file.

Where the values come from: the targets (GPU 70–90 % busy, memory below 80 %) are those of the guides the
product grew out of; prices in seconds say where they were measured; all others are judgement, checked against
the scripts of the diagnosis benchmark, which ran on one machine with two cores and no GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from monitor.model.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Ratios are 0–1, times in seconds unless the name says otherwise."""

    prices_measured: bool = False
    """The prices in seconds follow measurements of this machine (`gpumon doctor --calibrate`); else they are
    those of the machine the benchmarks ran on. Not a threshold: no file sets it."""

    # GPUs
    gpu_busy_low: float = 0.70
    """Below this utilization a GPU that trains is underused (target 70–90 %)."""
    gpu_busy_high: float = 0.90
    """Above this the GPU is the limit, which is good news (target 70–90 %)."""
    gpu_idle: float = 0.05
    """Below this utilization a GPU without a run is called idle."""
    gpu_unused: float = 0.02
    """Below this utilization a GPU that a process holds does nothing at all."""
    gpu_starved: float = 0.20
    """Share of the step a device waits for work from which its run is called starving."""
    idle_seconds: float = 300.0
    """Held and without work for this long is an idle allocation."""
    memory_high: float = 0.80
    """Device memory use above this is worth a warning (target < 80 %)."""
    memory_full: float = 0.95
    """Device memory use above this is one allocation away from running out."""
    memory_low: float = 0.60
    """Memory use up to which there is room to spare: trading time for memory is then not needed."""
    throttle_clock_ratio: float = 0.90
    """SM clock over its maximum below which a power limit costs something."""
    locked_clock_ratio: float = 0.70
    """SM clock over its maximum below which a busy GPU that nothing throttles is called slow."""
    link_busy: float = 0.20
    """Utilization from which a PCIe link should be at full speed: an idle GPU lowers it on purpose."""
    shared_bytes: int = 256 << 20
    """Device memory of other processes from which a GPU counts as shared: an idle context holds less."""
    shared_sm: float = 0.05
    """SM share of other processes from which a GPU counts as shared."""

    # When a rule may speak
    min_steps: int = 8
    """Steady steps before a rule about step time may speak."""
    few_steps: int = 50
    """Steady steps below which a verdict says on how few it rests."""
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
    """Speed-up that a rule must promise at least for a warning."""

    # Input
    data_share: float = 0.16
    """Share of the step spent waiting for data above which the loader is looked at."""
    input_bound_share: float = 0.25
    """The same where nothing finer is known than that the step waits."""
    dominant_share: float = 0.5
    """Share of a whole that makes one part of it "the" cause."""
    sampler_share: float = 0.4
    """Share of loading in the sampler that is worth a finding."""
    sampler_step_share: float = 0.05
    """Share of the step in the sampler that is worth a finding."""
    prefetch_low: int = 4
    """Batches in stock per worker up to which the queue is called shallow; the smallest one suggested."""
    prefetch_stock: int = 8
    """Batches in stock over all workers above which the queue is deep enough."""
    workers_gain: float = 0.95
    """More workers must bring the step to at most this share of its time to be suggested."""
    in_place_gain: float = 0.85
    """Loading in the loop must bring the step below this share of its time to be suggested."""
    workers_per_core: float = 1.5
    """Workers per core above which they are too many where the step waits for data."""
    idle_workers_per_core: float = 3.0
    """Workers per core from which they are too many even where nothing waits for them."""
    many_workers: int = 4
    """Fewer workers than this are never too many by themselves."""
    workers_busy: float = 0.5
    """Share of the time workers work above which they are needed."""
    worker_transport_seconds: float = 0.0015
    """What handing one batch from a worker to the main process costs: a few tensors, each through a socket to
    the worker that made it. Measured on a machine with two cores."""
    worker_pinned_seconds: float = 0.0004
    """The same when a thread takes the batches over and pins them meanwhile. An estimate."""
    worker_slowdown: float = 1.1
    """Factor on CPU work that moves from the loop into a worker. An estimate for two cores."""
    worker_batch_seconds: float = 0.0012
    """What a worker spends on a batch besides: shared memory for its tensors, pickling, the queue. An
    estimate for two cores."""
    worker_start_seconds: float = 0.08
    """What starting one worker costs at least (fork). An estimate for two cores."""
    crowded_cores: float = 0.8
    """What cores give, of their number, when more processes want them than there are. An estimate
    for two cores."""

    # The loop
    phase_share: float = 0.08
    """Share of the run a side job (logging, norms, validation, checkpoints) may take."""
    validation_share: float = 0.15
    """Share of the run validation may take."""
    grad_norm_share: float = 0.15
    """Share of the step `clip_grad_norm_` may take (a loop of one's own: `phase_share`)."""
    side_job_count: int = 3
    """How often a periodic side job must have been seen before its share counts."""
    loop_share: float = 0.30
    """Share of the step a Python loop must take to be worth replacing."""
    hot_share: float = 0.35
    """Share of a phase one user line must have before a finding names it as the cause."""
    user_code_share: float = 0.15
    """Share of the step one line of the user's own code must take to be named."""
    user_code_step_share: float = 0.25
    """Share of the step from which such a line is named whatever its share of the phase."""
    gc_share: float = 0.05
    """Share of the step in Python's garbage collector that is worth a finding."""
    hint_share: float = 0.05
    """Share of the step copies must take before they are looked at."""
    many_copies: int = 12
    """Copies a step from which they are many."""
    small_copy_bytes: int = 256 << 10
    """Bytes a copy up to which it is small: its fixed cost outweighs the transfer."""

    # Compute
    tiny_batch: int = 16
    """Batches up to this size are suspected of paying more for the step than for the samples."""
    fixed_share: float = 0.4
    """Share of a tiny batch's step that is fixed cost before a larger batch is advised."""
    batch_wait_share: float = 0.30
    """Share of the step waiting for data above which a larger batch would only wait longer."""
    optimizer_share: float = 0.15
    """Share of the step an optimizer update may take before its implementation matters."""
    optimizer_warn_share: float = 0.6
    """Share of the step from which a default (unfused) optimizer is worth a warning."""
    many_groups: int = 8
    """Parameter groups above which they cost the update noticeably."""
    starved_share: float = 0.15
    """Device time without work, with no data wait, that means launch-bound."""
    queue_ahead: float = 0.2
    """How often the device may still have work at the end of a phase in a launch-bound loop."""
    compile_steps: int = 500
    """Steps a run must have made before compilation is suggested: it has to pay for its warm-up."""
    many_recompiles: int = 6
    """Recompilations from which they are worth a finding whatever they cost: dynamo gives up at eight."""
    threads_excess: float = 1.25
    """Compute threads per core above which the cores are oversubscribed."""
    threads_step_seconds: float = 0.01
    """Steps shorter than this gain nothing from more threads."""
    op_seconds_cpu: float = 18e-6
    """Fixed cost of one module on a CPU, of each pass. Measured on a machine with two cores."""
    cpu_flops: float = 4e10
    """Floating-point operations a second one CPU core does in small matrix products. An estimate for
    the machine the benchmarks ran on."""

    # The machine
    io_wait: float = 0.20
    """Share of time in I/O wait that means the disk is the limit."""
    disk_busy: float = 0.5
    """Share of the time a disk must be busy to be the limit."""
    cpu_full: float = 0.92
    """CPU utilization at which more workers cannot help."""
    own_cpu_full: float = 0.8
    """Share of all cores that the run itself must use for the CPU to be its own limit."""
    other_cpu: float = 0.30
    """Share of all cores used by processes outside the run that counts as contention."""
    other_cpu_heavy: float = 0.60
    """The same for a warning instead of a hint."""
    cpu_pressure: float = 0.20
    """Share of the time in which tasks wait for a core that counts as contention."""
    cpu_pressure_heavy: float = 0.50
    """The same for a warning instead of a hint."""
    contention_ticks: int = 30
    """Evaluations that others must have been busy for a warning: half a minute at the default interval."""
    quota_throttled: float = 0.10
    """Share of scheduling periods in which the container's CPU quota stopped the run."""
    swap_bytes_per_second: float = 1 << 20
    """Swap traffic above this slows training down."""
    swap_memory_used: float = 0.70
    """Memory use above which swap traffic counts as a lack of memory."""
    memory_exhausted: float = 0.05
    """With less than this share of memory free when a run ended, memory counts as the cause."""

    # Over the run
    leak_bytes: int = 24 << 20
    """Growth of memory that is worth calling a leak."""
    leak_bytes_per_step: float = 16 << 10
    """Growth per step below which a leak is not called one."""
    leak_ratio: float = 0.04
    """Growth relative to the start that is worth calling a leak."""
    trend_ratio: float = 0.80
    """Throughput now over the best sustained throughput below which a run decays."""
    trend_falling: float = 0.90
    """Throughput over the run's own best below which its trend is called falling."""
    trend_collapsed: float = 0.60
    """Throughput over the run's own best below which its trend is called collapsed."""
    hung_seconds: float = 30.0
    """No step for this long is a hang, unless the run's own steps are as long."""
    hung_steps: float = 10.0
    """No step for this many usual (p95) steps is a hang."""
    hung_longest: float = 3.0
    """No step for this many times the longest step so far is a hang."""
    stall_share: float = 0.08
    """Share of time in stalls that is worth a finding."""
    stall_count: int = 4
    """Stalls of one kind before they are called periodic."""
    setup_seconds: float = 120.0
    """Time from the start to the first step that is long in itself."""
    setup_share: float = 0.5
    """Share of a run's life spent before the first step that is long for a short run."""
    setup_short_seconds: float = 10.0
    """Set-up shorter than this is not mentioned, whatever its share."""

    # Ranks
    straggler_ratio: float = 1.10
    """Own work of the slowest rank over the median rank's."""
    straggler_share: float = 0.05
    """Share of the step all ranks must lose to the slowest one."""
    collective_share: float = 0.15
    """Share of the step in exposed collectives that is worth a finding."""


DEFAULT_POLICY = Policy()


def load_policy(path: Path) -> Policy:
    """The policy with what a TOML file sets; unknown names and wrong types are the user's error."""
    import tomllib  # not at the top: most users have no such file

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
        if name not in known or isinstance(known[name], bool):
            raise UserError(f"{where}: no such threshold: {name}", hint=f"known: {', '.join(sorted(known))}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UserError(f"{where}: {name} must be a number of at least 0, not {value!r}")
    return replace(DEFAULT_POLICY, **{name: type(known[name])(value) for name, value in table.items()})
